# cmake -D SOURCE=<repository> -D WORK=<scratch> -D GENERATOR=... -D COMPILER=... -P without_packages.cmake
# Packages that only tests and programs need may be missing. Then these tests and programs are left out, and everything
# else is built. If an option asks for a part whose package is missing, the error names the package.
cmake_minimum_required(VERSION 3.25)

# configure(status output option...)
function(configure status output)
  file(REMOVE_RECURSE ${WORK})
  execute_process(COMMAND ${CMAKE_COMMAND} -S ${SOURCE} -B ${WORK} -G ${GENERATOR} -D CMAKE_CXX_COMPILER=${COMPILER}
                          -D CMAKE_DISABLE_FIND_PACKAGE_Catch2=ON -D CMAKE_DISABLE_FIND_PACKAGE_CLI11=ON
                          -D CMAKE_DISABLE_FIND_PACKAGE_PNG=ON -D CMAKE_DISABLE_FIND_PACKAGE_MPI=ON
                          -D CMAKE_DISABLE_FIND_PACKAGE_kissfft=ON ${ARGN}
                  RESULT_VARIABLE result OUTPUT_VARIABLE text ERROR_VARIABLE text)
  string(REGEX REPLACE "[ \n]+" " " text "${text}")
  set(${status} ${result} PARENT_SCOPE)
  set(${output} "${text}" PARENT_SCOPE)
endfunction()

configure(status output)
if(NOT status EQUAL 0)
  message(FATAL_ERROR "without Catch2, CLI11, libpng, MPI and kissfft the project cannot be configured:\n${output}")
endif()
foreach(part tests examples tools)
  if(EXISTS ${WORK}/${part}/cmake_install.cmake)
    message(FATAL_ERROR "${part} would be built without their packages")
  endif()
endforeach()

# refused(option package setting...): the option asks for a part, and the error names the missing package.
function(refused option package)
  configure(status output -D ${option}=ON ${ARGN})
  string(FIND "${output}" "${option} is ON, and ${package}, which" position)
  if(status EQUAL 0 OR position EQUAL -1)
    message(FATAL_ERROR "${option}=ON without ${package}: expected an error that names it:\n${output}")
  endif()
endfunction()
refused(QUANTRAIN_TESTS Catch2)
refused(QUANTRAIN_EXAMPLES CLI11)
refused(QUANTRAIN_PROGRAM CLI11)
refused(QUANTRAIN_PNG PNG)
refused(QUANTRAIN_MPI MPI)
# The audio examples are built only with the other examples, which need CLI11. So CLI11 is not missing here.
refused(QUANTRAIN_AUDIO kissfft -D QUANTRAIN_EXAMPLES=ON -D CMAKE_DISABLE_FIND_PACKAGE_CLI11=OFF)
file(REMOVE_RECURSE ${WORK})
