"""Loops and their figures, from listings as RADV prints them."""

from __future__ import annotations

import pytest

from tests.hardware.assembly import hot_loop, loop_trees, loops

RDNA_2 = """
==== Assembly
BB0:
	s_inst_prefetch 0x3                     ; bfa00003
	v_mov_b32_e32 v0, 0                     ; 7e000280
BB1:
	ds_read_b128 v[4:7], v1 offset:1024     ; dbfc0400 04000001
	buffer_load_dwordx4 v[8:11], v2, s[4:7], 0 offen ; e0381000 80010802
	s_waitcnt lgkmcnt(0)                    ; bf8cc07f
	s_barrier                               ; bf8a0000
	v_fmac_f32_e32 v12, v4, v8              ; 56181104
	v_fmac_f32_e32 v13, v5, v9              ; 561a1305
	v_fma_f32 v14, v6, v10, v14             ; d54b000e 043a1506
	v_add_nc_u32_e32 v1, 16, v1             ; 4a020290
	s_cbranch_scc1 BB1                      ; bf85fff8
BB2:
	s_endpgm                                ; bf810000
"""

RDNA_3 = """
==== Assembly
BB0:
	v_mov_b32_e32 v0, 0
BB1:
	ds_load_2addr_b64 v[4:7], v1 offset1:1
	global_load_b128 v[8:11], v[2:3], off
	v_dual_fmac_f32 v12, v4, v8 :: v_dual_fmac_f32 v13, v5, v9
	v_dual_fmac_f32 v14, v6, v10 :: v_dual_add_f32 v15, v7, v11
	s_cbranch_scc1 BB1
"""

NESTED = """
==== Assembly
BB0:
	v_mov_b32_e32 v0, 0
BB1:
	v_mov_b32_e32 v1, 0
BB2:
	v_fmac_f32_e32 v1, v2, v3
	s_cbranch_scc1 BB2
BB3:
	v_fmac_f32_e32 v4, v2, v3
	s_cbranch_scc1 BB1
"""


def test_multiply_adds_slots_and_bytes_of_a_loop() -> None:
    (loop,) = loops(RDNA_2)
    assert (loop.multiply_adds, loop.slots, loop.barriers) == (3, 4, 1)
    assert (loop.local_bytes, loop.global_bytes) == (16, 16)
    assert loop.share == 0.75
    assert loop.rate == pytest.approx(3 / 16)


def test_two_instructions_in_one_slot() -> None:
    (loop,) = loops(RDNA_3)
    assert (loop.multiply_adds, loop.slots) == (3, 2)
    assert (loop.local_bytes, loop.global_bytes) == (16, 16)


def test_only_innermost_loops_count() -> None:
    (loop,) = loops(NESTED)
    assert (loop.multiply_adds, loop.slots) == (1, 1)


def test_outer_loops_count_one_iteration_of_inner_ones() -> None:
    (outer,) = loop_trees(NESTED)
    (inner,) = outer.inner
    assert [(tree.loop.label, tree.loop.multiply_adds) for tree in (outer, inner)] == [("BB1", 2), ("BB2", 1)]


def test_a_loop_ends_with_the_last_branch_to_its_start() -> None:
    # `continue` is a branch of its own.
    (outer,) = loop_trees(NESTED.replace("\tv_mov_b32_e32 v1, 0\n", "\ts_cbranch_scc0 BB1\n"))
    assert (outer.loop.multiply_adds, len(outer.inner)) == (2, 1)


def test_a_kernel_without_multiply_adds_has_no_hot_loop() -> None:
    assert hot_loop(RDNA_2.replace("v_fma", "v_add")) is None


@pytest.mark.parametrize(
    ("instruction", "count"),
    [
        ("v_pk_fma_f16 v0, v1, v2, v0", 2),
        ("v_fma_mix_f32 v0, v1, v2, v0", 1),
        ("v_dot4_i32_i8 v0, v1, v2, v0", 4),
        ("v_mac_f32_e32 v0, v1, v2", 1),
        ("v_mul_f32_e32 v0, v1, v2", 0),
    ],
)
def test_multiply_adds_by_instruction(instruction: str, count: int) -> None:
    (loop,) = loops(f"==== Assembly\nBB0:\n\t{instruction}\n\ts_cbranch_scc1 BB0\n")
    assert loop.multiply_adds == count
