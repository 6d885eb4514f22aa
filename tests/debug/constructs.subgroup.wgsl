// Parts of kernels in which subgroups work together, as in constructs.wgsl.

//// subgroup sums
    m[at] = subgroupAdd(k & 255u) + subgroupMax(k & 1023u) * 3u;
    y[at] = subgroupExclusiveAdd(v) + subgroupInclusiveMul(v);

//// subgroup shuffles
    m[at] = subgroupShuffle(k, (lane + 3u) % 8u) ^ subgroupShuffleXor(k, 1u) ^ subgroupBroadcastFirst(k);
    y[at] = subgroupShuffle(vec2(v, 2.0), 7u - lane).x;

//// subgroup votes
    m[at] = subgroupBallot(v > 0.0).x + 1000u * u32(subgroupAny(v > 1.0)) + 10000u * u32(subgroupAll(v < 9.0));

//// subgroups of the active ones
    if (lane % 3u != 0u) {
        m[at] = subgroupAdd(k & 15u) + 100u * subgroupBroadcastFirst(lane);
    }
