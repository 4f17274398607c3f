# cmake -D BUILD=<build folder> -D SOURCE=<this folder> -D WORK=<scratch> -D VERSION=... -D GENERATOR=...
#       -D COMPILER=... -D CONFIG=... -D THREADS=<QUANTRAIN_THREADS> -P run.cmake
# Installs the build and checks the links of the installed pages. Then builds and runs projects on the installed package:
# one that uses everything and compiles every installed header, and one that uses only the runtime. Also builds a project
# that contains quantrain's sources as a subdirectory.
cmake_minimum_required(VERSION 3.25)

function(run)
  execute_process(COMMAND ${ARGV} COMMAND_ERROR_IS_FATAL ANY OUTPUT_QUIET)
endfunction()

set(toolchain -G ${GENERATOR} -D CMAKE_CXX_COMPILER=${COMPILER})
# project_on_package(name folder option...): configures and builds a project on the installed package.
function(project_on_package name folder)
  run(${CMAKE_COMMAND} -S ${folder} -B ${WORK}/${name} ${toolchain} -D CMAKE_BUILD_TYPE=${CONFIG}
      -D CMAKE_PREFIX_PATH=${WORK}/prefix ${ARGN})
  # The build tool prints compiler errors to its standard output.
  execute_process(COMMAND ${CMAKE_COMMAND} --build ${WORK}/${name} --config ${CONFIG} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

# prints_version(program): the program runs, and prints the version.
function(prints_version)
  execute_process(COMMAND ${ARGV} COMMAND_ERROR_IS_FATAL ANY OUTPUT_VARIABLE output)
  if(NOT output MATCHES "quantrain ${VERSION}\n")
    message(FATAL_ERROR "${ARGV} did not print the version ${VERSION}:\n${output}")
  endif()
endfunction()

# refused(folder component text): asks the package in this folder for the component. The package must refuse it with an
# error that contains `text`.
function(refused folder component text)
  execute_process(COMMAND ${CMAKE_COMMAND} -D quantrain_DIR=${folder} -D COMPONENTS=${component} -P ${SOURCE}/find.cmake
                  RESULT_VARIABLE status OUTPUT_QUIET ERROR_VARIABLE output)
  string(REGEX REPLACE "[ \n]+" " " output "${output}")
  string(FIND "${output}" "${text}" position)
  if(status EQUAL 0 OR position EQUAL -1)
    message(FATAL_ERROR "asked for ${component}, expected an error with \"${text}\":\n${output}")
  endif()
endfunction()

file(REMOVE_RECURSE ${WORK})
run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${WORK}/prefix --config ${CONFIG})

set(include ${WORK}/prefix/include/quantrain)
file(GLOB_RECURSE headers RELATIVE ${include} ${include}/*.hpp)
list(TRANSFORM headers REPLACE "(.+)" "#include \"\\1\"\n")
list(JOIN headers "" headers)
file(WRITE ${WORK}/headers.cpp "${headers}")

# The guide and the examples are installed, and every link of their pages leads to an installed file.
set(doc ${WORK}/prefix/share/doc/quantrain)
foreach(file README.md docs/guide.md docs/guide/training.md docs/guide/CMakeLists.txt docs/guide/train.cpp
        examples/readme.cpp examples/README.md)
  if(NOT EXISTS ${doc}/${file})
    message(FATAL_ERROR "share/doc/quantrain lacks ${file}")
  endif()
endforeach()
file(GLOB_RECURSE pages ${doc}/*.md)
set(checked 0)
foreach(page IN LISTS pages)
  cmake_path(GET page PARENT_PATH folder)
  file(READ ${page} text)
  string(REPLACE "](" "@(" text "${text}")
  string(REGEX MATCHALL "@\\([^):# \n]+[)#]" links "${text}")
  foreach(link IN LISTS links)
    string(REGEX REPLACE "@\\((.*)[)#]$" "\\1" link "${link}")
    if(NOT EXISTS ${folder}/${link})
      message(FATAL_ERROR "${page} links to ${link}, which is not installed")
    endif()
    math(EXPR checked "${checked} + 1")
  endforeach()
endforeach()
if(checked LESS 50)
  message(FATAL_ERROR "only ${checked} links were found in share/doc/quantrain")
endif()

# The program is installed with its manual page and completions, and finds its libraries.
if(EXISTS ${BUILD}/tools/quantrain.1)
  prints_version(${WORK}/prefix/bin/quantrain --version)
  foreach(file man/man1/quantrain.1 bash-completion/completions/quantrain zsh/site-functions/_quantrain
          fish/vendor_completions.d/quantrain.fish)
    if(NOT EXISTS ${WORK}/prefix/share/${file})
      message(FATAL_ERROR "share lacks ${file}")
    endif()
  endforeach()
endif()

project_on_package(build ${SOURCE})
run(${WORK}/build/framework_consumer)
prints_version(${WORK}/build/consumer)

# Without CMake: pkg-config gives the compiler's flags.
find_program(PKG_CONFIG pkg-config)
if(PKG_CONFIG)
  file(GLOB_RECURSE pc ${WORK}/prefix/quantrain.pc)
  cmake_path(GET pc PARENT_PATH pc)
  foreach(part quantrain quantrain-runtime)
    execute_process(COMMAND ${CMAKE_COMMAND} -E env PKG_CONFIG_PATH=${pc} ${PKG_CONFIG} --cflags --libs ${part}
                    OUTPUT_VARIABLE flags COMMAND_ERROR_IS_FATAL ANY)
    separate_arguments(flags UNIX_COMMAND "${flags}")
    if(part STREQUAL "quantrain")
      set(program ${SOURCE}/framework.cpp)
    else()
      set(program ${SOURCE}/runtime/main.cpp)
    endif()
    run(${COMPILER} -std=c++20 ${program} ${flags} -o ${WORK}/by_${part})
    run(${WORK}/by_${part})
  endforeach()
endif()

set(without -D CMAKE_DISABLE_FIND_PACKAGE_xtensor=ON -D CMAKE_DISABLE_FIND_PACKAGE_ZLIB=ON)
set(without_threads -D CMAKE_DISABLE_FIND_PACKAGE_TBB=ON -D CMAKE_DISABLE_FIND_PACKAGE_Threads=ON)
if(THREADS)
  project_on_package(runtime ${SOURCE}/runtime ${without} -D THREADS=ON)
else()
  project_on_package(runtime ${SOURCE}/runtime ${without} ${without_threads})
endif()
prints_version(${WORK}/runtime/runtime_consumer)

file(GLOB_RECURSE package ${WORK}/prefix/*/quantrainConfig.cmake)
cmake_path(GET package PARENT_PATH package)
refused(${package} nonsense "quantrain has no component nonsense: there are runtime, framework, layers and quant")

# A build of the runtime alone. It is only configured, because building it would compile the runtime a second time.
run(${CMAKE_COMMAND} -S ${SOURCE}/../.. -B ${WORK}/runtime_only ${toolchain} -D QUANTRAIN_TRAINING=OFF
    -D QUANTRAIN_THREADS=OFF -D QUANTRAIN_TESTS=ON ${without} ${without_threads} -D CMAKE_DISABLE_FIND_PACKAGE_Catch2=ON)
refused(${WORK}/runtime_only layers "the component layers is not in this build of quantrain")

run(${CMAKE_COMMAND} -S ${SOURCE}/subdirectory -B ${WORK}/subdirectory ${toolchain} -D QUANTRAIN=${SOURCE}/../..)
run(${CMAKE_COMMAND} --build ${WORK}/subdirectory --target parent)
