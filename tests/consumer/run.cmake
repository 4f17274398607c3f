# cmake -D BUILD=<build folder> -D SOURCE=<this folder> -D WORK=<scratch> -D VERSION=... -D GENERATOR=... -D COMPILER=...
#       -D CONFIG=... -P run.cmake
# Installs the build, checks that the installed headers stand on their own, then builds and runs a project on it.
cmake_minimum_required(VERSION 3.25)

function(run)
  execute_process(COMMAND ${ARGV} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

file(REMOVE_RECURSE ${WORK})
run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${WORK}/prefix --config ${CONFIG})

set(include ${WORK}/prefix/include/quantrain)
file(GLOB_RECURSE headers RELATIVE ${include} ${include}/*.hpp)
foreach(header ${headers})
  file(STRINGS ${include}/${header} lines REGEX "^ *#include \"")
  foreach(line ${lines})
    string(REGEX REPLACE "^ *#include \"([^\"]*)\".*" "\\1" wanted "${line}")
    if(NOT EXISTS ${include}/${wanted})
      message(FATAL_ERROR "installed ${header} includes ${wanted}, which is not installed")
    endif()
  endforeach()
endforeach()

run(${CMAKE_COMMAND} -S ${SOURCE} -B ${WORK}/build -G ${GENERATOR} -D CMAKE_CXX_COMPILER=${COMPILER}
    -D CMAKE_BUILD_TYPE=${CONFIG} -D CMAKE_PREFIX_PATH=${WORK}/prefix)
run(${CMAKE_COMMAND} --build ${WORK}/build --config ${CONFIG})
execute_process(COMMAND ${WORK}/build/consumer COMMAND_ERROR_IS_FATAL ANY OUTPUT_VARIABLE output)
if(NOT output MATCHES "quantrain ${VERSION}\n")
  message(FATAL_ERROR "the program did not print the version ${VERSION}:\n${output}")
endif()
