# quantrain_compile_settings(target): sets the language standard, warnings and sanitizers. Every target of this project
# uses them.
function(quantrain_compile_settings target)
  target_compile_features(${target} PUBLIC cxx_std_20)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wshadow -Wconversion -Wundef -ffp-contract=off)
  # Object files for Windows have at most 32768 sections without this flag; files that are compiled together need more.
  if(MINGW)
    target_compile_options(${target} PRIVATE -Wa,-mbig-obj)
  endif()
  if(QUANTRAIN_WARNINGS_AS_ERRORS)
    target_compile_options(${target} PRIVATE -Werror)
  endif()
  if(QUANTRAIN_SANITIZE)
    target_compile_options(${target} PRIVATE -fsanitize=${QUANTRAIN_SANITIZE} -fno-omit-frame-pointer
                                             -fno-sanitize-recover=all)
    target_link_options(${target} PUBLIC -fsanitize=${QUANTRAIN_SANITIZE})
    if(QUANTRAIN_SANITIZE MATCHES "address")
      target_compile_definitions(${target} PRIVATE QUANTRAIN_SANITIZE_ADDRESS=1)
    elseif(QUANTRAIN_SANITIZE MATCHES "thread")
      target_compile_definitions(${target} PRIVATE QUANTRAIN_SANITIZE_THREAD=1)
    endif()
  endif()
endfunction()

# quantrain_sources(out folder...): sets `out` to the list of all .cpp files in the folders, so a new file needs no
# entry anywhere. Only the sources of framework/kernels and three of framework/core are listed by hand, because each
# belongs to one of two libraries, or is for one architecture or option.
function(quantrain_sources out)
  list(TRANSFORM ARGN APPEND "/*.cpp" OUTPUT_VARIABLE patterns)
  file(GLOB sources CONFIGURE_DEPENDS RELATIVE ${CMAKE_CURRENT_SOURCE_DIR} ${patterns})
  set(${out} ${sources} PARENT_SCOPE)
endfunction()

# quantrain_library(name sources...): adds the library target quantrain_name. This project and users of the installed
# package refer to it as quantrain::name.
function(quantrain_library name)
  set(target quantrain_${name})
  add_library(${target} ${ARGN})
  add_library(quantrain::${name} ALIAS ${target})
  # Before 1.0 a minor version may change the interface.
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${name} POSITION_INDEPENDENT_CODE ON
    DEFINE_SYMBOL "" VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
  target_include_directories(${target} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>
                                              $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/quantrain>)
  quantrain_compile_settings(${target})
endfunction()

# quantrain_precompile(target): precompiles the standard headers that nearly every file includes.
function(quantrain_precompile target)
  target_precompile_headers(${target} PRIVATE <algorithm> <cmath> <functional> <map> <memory> <optional> <ostream> <span>
    <string> <string_view> <tuple> <variant> <vector>)
endfunction()

# quantrain_unity(target): compiles up to eight files of the target together. This takes a third of the time, because
# templates of the standard library are instantiated once for all of them. The rule that follows: two files of one target
# must not give different things in unnamed namespaces the same name. Each file is compiled alone with
# CMAKE_UNITY_BUILD=OFF (presets dev and clang), so that a change rebuilds little and missing includes show, and in a
# project that contains this one, whose build must not depend on our choice.
function(quantrain_unity target)
  if(NOT PROJECT_IS_TOP_LEVEL OR (DEFINED CMAKE_UNITY_BUILD AND NOT CMAKE_UNITY_BUILD))
    return()
  endif()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 8)
  # GCC takes the files for headers, in which types of an unnamed namespace would differ from file to file.
  target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
endfunction()
