#!/bin/sh
# Installs what `python -m tests.hardware` takes into a folder: the layer, and beside the system's Mesa 22.3 a newer Mesa that knows
# newer families. Debian's packages are unpacked there; but for compiler, headers and the system's driver nothing is installed.
set -eu
folder=$1 here=$(dirname "$0") machine=$(uname -m)
[ "$machine" = x86_64 ] || { echo "AMD's compiler is read on x86_64 alone; this machine is $machine" >&2; exit 1; }
command -v apt-get >/dev/null || { echo "This takes Debian's packages mesa-vulkan-drivers, libvulkan-dev and gcc" >&2; exit 1; }

missing=""
command -v gcc >/dev/null || missing="$missing gcc libc6-dev"
[ -e /usr/include/vulkan/vk_layer.h ] || missing="$missing libvulkan-dev"
[ -e /usr/share/vulkan/icd.d/radeon_icd.x86_64.json ] || missing="$missing mesa-vulkan-drivers libvulkan1"
if [ -n "$missing" ]; then
    ${SUDO:-} apt-get -qq update
    # shellcheck disable=SC2086
    ${SUDO:-} env DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends $missing >/dev/null
fi
mkdir -p "$folder"
gcc -O2 -shared -fPIC -o "$folder/libnull_gpu.so" "$here/layer/null_gpu.c"

# Debian's backports, from the mirror that this machine uses, with lists of their own: the system's stay as they are.
folder=$(cd "$folder" && pwd) apt=$folder/apt
mkdir -p "$apt/lists/partial" "$apt/archives/partial"
set -- $(apt-get indextargets --format '$(REPO_URI) $(CODENAME)' 'Identifier: Packages' 'Origin: Debian' 'Label: Debian' |
    grep -v -- - | sort -u | head -n 1)
[ $# = 2 ] || { echo "This machine has no source of Debian's packages: newer families are left out" >&2; exit 0; }
printf 'deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] %s %s-backports main\n' "$1" "$2" >"$apt/sources.list"
own="-o Dir::Etc::sourcelist=$apt/sources.list -o Dir::Etc::sourceparts=/dev/null -o Dir::State::Lists=$apt/lists -o Dir::Cache=$apt"
# shellcheck disable=SC2086
apt-get -qq $own update
# shellcheck disable=SC2086
(cd "$apt" && for package in mesa-vulkan-drivers libdrm2 libdrm-amdgpu1; do
    apt-get -qq $own -o APT::Sandbox::User=root download "$package/$2-backports"
done)
for package in "$apt"/*.deb; do dpkg -x "$package" "$folder/mesa-25"; done
libraries=$folder/mesa-25/usr/lib/x86_64-linux-gnu
printf '{"ICD": {"api_version": "1.4.305", "library_path": "%s"}, "file_format_version": "1.0.0"}\n' \
    "$libraries/libvulkan_radeon.so" >"$folder/mesa-25/radeon_icd.json"
printf '{"ICD": {"api_version": "1.4.305", "library_path": "%s"}, "file_format_version": "1.0.0"}\n' \
    "$libraries/libvulkan_lvp.so" >"$folder/mesa-25/lvp_icd.json"
rm -r "$apt"
