#!/bin/sh
# Builds `run` with the headers and libraries of the installed wheels: sh build.sh [output]
#
# For another processor, unpack its wheels of apache-tvm and apache-tvm-ffi into a folder:
#   CXX=aarch64-linux-gnu-g++ PACKAGES=folder sh build.sh run-aarch64
set -e
here=$(dirname "$0")
locate() {
    if [ -n "$PACKAGES" ]; then
        echo "$PACKAGES/$1"
    else
        "${PYTHON:-python3}" -c "import importlib.util as u; print(u.find_spec('$1').submodule_search_locations[0])"
    fi
}
ffi=$(locate tvm_ffi)
tvm=$(locate tvm)
${CXX:-g++} -std=c++17 -O2 "$here/run.cc" -o "${1:-run}" \
    -I"$ffi/include" -L"$tvm/lib" -L"$ffi/lib" \
    -Wl,--no-as-needed -ltvm_runtime -ltvm_runtime_extra -ltvm_ffi \
    -Wl,-rpath,"$tvm/lib" -Wl,-rpath,"$ffi/lib" -Wl,-rpath-link,"$ffi/lib"
