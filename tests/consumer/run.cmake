# cmake -D BUILD=<build folder> -D SOURCE=<this folder> -D WORK=<scratch> -D VERSION=... -D GENERATOR=... -D COMPILER=...
#       -D CONFIG=... -P run.cmake
# Installs the build, then builds and runs a project on it. The project also compiles every header that is installed.
# Another one has the sources in a subdirectory.
cmake_minimum_required(VERSION 3.25)

function(run)
  execute_process(COMMAND ${ARGV} COMMAND_ERROR_IS_FATAL ANY OUTPUT_QUIET)
endfunction()

file(REMOVE_RECURSE ${WORK})
run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${WORK}/prefix --config ${CONFIG})

set(include ${WORK}/prefix/include/quantrain)
file(GLOB_RECURSE headers RELATIVE ${include} ${include}/*.hpp)
list(TRANSFORM headers REPLACE "(.+)" "#include \"\\1\"\n")
list(JOIN headers "" headers)
file(WRITE ${WORK}/headers.cpp "${headers}")

run(${CMAKE_COMMAND} -S ${SOURCE} -B ${WORK}/build -G ${GENERATOR} -D CMAKE_CXX_COMPILER=${COMPILER}
    -D CMAKE_BUILD_TYPE=${CONFIG} -D CMAKE_PREFIX_PATH=${WORK}/prefix)
# The build tool prints compiler errors to its standard output.
execute_process(COMMAND ${CMAKE_COMMAND} --build ${WORK}/build --config ${CONFIG} COMMAND_ERROR_IS_FATAL ANY)
run(${WORK}/build/framework_consumer)
execute_process(COMMAND ${WORK}/build/consumer COMMAND_ERROR_IS_FATAL ANY OUTPUT_VARIABLE output)
if(NOT output MATCHES "quantrain ${VERSION}\n")
  message(FATAL_ERROR "the program did not print the version ${VERSION}:\n${output}")
endif()

run(${CMAKE_COMMAND} -S ${SOURCE}/subdirectory -B ${WORK}/subdirectory -G ${GENERATOR} -D CMAKE_CXX_COMPILER=${COMPILER}
    -D QUANTRAIN=${SOURCE}/../..)
run(${CMAKE_COMMAND} --build ${WORK}/subdirectory --target parent)
