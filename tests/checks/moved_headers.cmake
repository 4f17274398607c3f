# cmake -D SOURCE=<repository> -D WORK=<scratch> -D COMPILER=... -D XTENSOR=<its include folder> -P moved_headers.cmake
# Tests that examples/xtensor.cpp finds xtensor's headers at the paths to which 0.26 moved them. The test makes a folder
# with a header at each new path and an #error at each old one.
cmake_minimum_required(VERSION 3.25)
find_path(xtensor xtensor/xarray.hpp HINTS ${XTENSOR})
if(NOT xtensor)
  message(NOTICE "SKIPPED: this xtensor has moved its headers itself")
  return()
endif()
file(REMOVE_RECURSE ${WORK})
foreach(header containers/xadapt containers/xarray core/xmath core/xnoalias)
  get_filename_component(name ${header} NAME)
  file(WRITE ${WORK}/xtensor/${header}.hpp "#include \"${xtensor}/xtensor/${name}.hpp\"\n")
  file(WRITE ${WORK}/xtensor/${name}.hpp "#error not here since 0.26\n")
endforeach()
execute_process(COMMAND ${COMPILER} -std=c++20 -fsyntax-only -I ${WORK} -I ${SOURCE} ${SOURCE}/examples/xtensor.cpp
                COMMAND_ERROR_IS_FATAL ANY)
