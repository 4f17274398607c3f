# Builds for 64-bit Arm on Debian, and runs the programs under QEMU (scripts/test_cpus).
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64)
# These packages contain only headers, which are the same on every machine. So those of the build machine are used.
foreach(package xtensor xsimd)
  file(GLOB ${package}_DIR /usr/lib/*/cmake/${package})
endforeach()
