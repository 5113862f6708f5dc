#!/bin/sh
# Builds `run` with the headers and libraries of the installed wheels: sh build.sh [output]
set -e
here=$(dirname "$0")
python=${PYTHON:-python3}
ffi=$("$python" -c 'import importlib.util as u; print(u.find_spec("tvm_ffi").submodule_search_locations[0])')
tvm=$("$python" -c 'import importlib.util as u; print(u.find_spec("tvm").submodule_search_locations[0])')
${CXX:-g++} -std=c++17 -O2 "$here/run.cc" -o "${1:-run}" \
    -I"$ffi/include" -L"$tvm/lib" -L"$ffi/lib" \
    -Wl,--no-as-needed -ltvm_runtime -ltvm_runtime_extra -ltvm_ffi \
    -Wl,-rpath,"$tvm/lib" -Wl,-rpath,"$ffi/lib"
