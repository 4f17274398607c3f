# cmake -D SOURCE=<repository> -P includes.cmake
# Checks that includes point in one direction, and that only the files listed in the variable library_<name> include the
# headers of the library <name>. Every source file must lie in a folder that is listed here, and every library must be
# listed, too: a new one is an error until its place is known.
cmake_minimum_required(VERSION 3.25)
include(${CMAKE_CURRENT_LIST_DIR}/files.cmake)
set(rooms framework/core framework/io framework/arithmetic framework/kernels framework/integer framework/autograd
          framework/data framework/optim framework/metrics layers layers/network layers/onnx layers/training quant quant/observers quant/prepare quant/lowering quant/analysis
          quant/import quant/export examples)
# These folders are called "rooms". A file may include headers of its own room and of the rooms before it in the list.
# But optim may not include data; importers and exporters may include only their own room and the rooms up to
# framework/integer.
set(seen)
foreach(room IN LISTS rooms)
  string(MAKE_C_IDENTIFIER ${room} id)
  list(APPEND seen ${room})
  set(seen_${id} ${seen})
endforeach()
list(REMOVE_ITEM seen_framework_optim framework/data)
set(seen_quant_import ${seen_framework_integer} quant/import)
set(seen_quant_export ${seen_framework_integer} quant/export)
# These folders may include every room and the folders named here, and no room may include them.
set(seen_tests ${rooms} tests)
set(seen_benchmarks ${rooms} benchmarks)
set(seen_fuzz ${rooms} tests fuzz)
set(seen_docs ${rooms})
set(outside tests benchmarks fuzz docs)

# room_of(result path): the room of a file, or its folder outside of all rooms. Empty if the file lies in no such
# folder. Folders in framework/, layers/ and quant/ must be rooms of their own.
function(room_of result path)
  set(found)
  foreach(room IN LISTS rooms outside)
    if(path MATCHES "^${room}/")
      set(found ${room})
    endif()
  endforeach()
  if(found MATCHES "^(layers|quant)$" AND path MATCHES "^[^/]*/[^/]*/")
    set(found)
  endif()
  set(${result} ${found} PARENT_SCOPE)
endfunction()

set(library_xtensor framework/core/array.hpp tests/framework/data/npy_test.cpp)
set(library_xsimd framework/kernels/simd/batch.hpp)
set(library_protozero layers/onnx/message.cpp)
set(library_tbb framework/core/parallel.cpp tests/framework/core/parallel_tbb_test.cpp)
set(library_catch2 tests/catch.hpp tests/main.cpp)
# Every file may include these. (Headers of framework/ may not include nlohmann_json: see below.)
set(free_libraries nlohmann CLI benchmark sanitizer sys)

# check_list(header folder except): checks that the header includes every header of the folder, so that users get all
# operations or all layers. `except` names, without extension, headers that may be missing, because they hold code that
# several operations or layers share.
function(check_list header folder except)
  file(READ ${SOURCE}/${header} text)
  file(GLOB files RELATIVE ${SOURCE} ${SOURCE}/${folder}/*.hpp)
  foreach(file IN LISTS files)
    get_filename_component(stem ${file} NAME_WE)
    string(FIND "${text}" "#include \"${file}\"" position)
    if(position EQUAL -1 AND NOT stem IN_LIST except AND NOT file STREQUAL header)
      message(FATAL_ERROR "${header} must include ${file}")
    endif()
  endforeach()
endfunction()
check_list(framework/autograd/ops.hpp framework/autograd/ops "batch_norm_pass;broadcast;code_function;convolution;gather;integer_product;masked;pool1d;pool2d;reduce;stored_codes")
check_list(layers/layers.hpp layers "convolution")

# Exporters and the runtime of integer networks must not include float kernels or the headers in `not_for_runtime`.
# Exporters may include headers that lie directly in framework/kernels, but none from its subfolders. Headers of
# framework/ must not include nlohmann_json; its sources may.
string(REPLACE ";" "|" runtime "${seen_quant_export}")
set(runtime "^(${runtime})/")
set(not_for_runtime framework/core/array.hpp framework/core/random.hpp)

# Projects of their own find headers in other ways, and tests/proofs/same also builds older sources. C sources include
# generated files.
set(projects "^(docs/guide|tests/consumer|tests/proofs/same)/|\\.[ch]$")

# refuse(text): prints the fault and counts it.
set(bad 0)
macro(refuse text)
  message(NOTICE "${text}")
  math(EXPR bad "${bad} + 1")
endmacro()

project_files(files "\\.(c|cc|cpp|cppm|cu|cxx|h|hh|hpp|hxx|inc|inl|ipp|tpp)$")
set(homeless)
foreach(file IN LISTS files)
  room_of(room ${file})
  if(NOT room)
    get_filename_component(folder "./${file}" DIRECTORY)
    if(NOT folder IN_LIST homeless)
      list(APPEND homeless ${folder})
      refuse("${file}: the folder is no room: give it a place in `rooms` of tests/checks/includes.cmake")
    endif()
    continue()
  endif()
  string(MAKE_C_IDENTIFIER ${room} id)
  # <sstream> is refused: if memory runs out, std::ostringstream continues without a part of the text.
  file(STRINGS ${SOURCE}/${file} streams REGEX "^[ \t]*#[ \t]*include[ \t]*<sstream>")
  if(streams AND file MATCHES "^(framework|layers|quant)/" AND NOT file STREQUAL framework/core/text_stream.hpp)
    refuse("${file} must not include sstream; use TextStream of framework/core/text_stream.hpp")
  endif()
  file(STRINGS ${SOURCE}/${file} lines REGEX "^[ \t]*#[ \t]*include")
  foreach(line IN LISTS lines)
    if(NOT line MATCHES "^[ \t]*#[ \t]*include[ \t]*([<\"])([^>\"]*)[>\"]")
      if(NOT file MATCHES "${projects}")
        refuse("${file} must not include what a macro names: ${line}")
      endif()
      continue()
    endif()
    set(quoted OFF)
    if(CMAKE_MATCH_1 STREQUAL "\"")
      set(quoted ON)
    endif()
    set(wanted "${CMAKE_MATCH_2}")
    string(REGEX MATCH "^[^/]+/" top "${wanted}")
    string(REPLACE "/" "" top "${top}")
    room_of(wanted_room "${wanted}")
    set(allowed ON)
    if(top AND DEFINED library_${top})
      if(NOT file IN_LIST library_${top})
        set(allowed OFF)
      endif()
    elseif(wanted_room)  # whether in quotes or in angle brackets
      if(NOT wanted_room IN_LIST seen_${id})
        set(allowed OFF)
      endif()
    elseif(quoted)
      if(NOT file MATCHES "${projects}")
        refuse("${file} includes ${wanted}, which is in no room: write the path from the root of the repository")
      endif()
    elseif(top AND NOT top IN_LIST free_libraries)
      refuse("${file} includes ${wanted} of a library that tests/checks/includes.cmake does not list")
    endif()
    if(wanted IN_LIST not_for_runtime AND file MATCHES "${runtime}" AND NOT file MATCHES "^framework/core/random\\.cpp$")
      set(allowed OFF)
    endif()
    if(wanted MATCHES "^framework/kernels/float/" AND file MATCHES "${runtime}" AND
       NOT file MATCHES "^framework/kernels/float/")
      set(allowed OFF)
    endif()
    if(wanted MATCHES "^framework/kernels/.*/" AND file MATCHES "^quant/export/")
      set(allowed OFF)
    endif()
    if(top STREQUAL "nlohmann" AND file MATCHES "^framework/.*\\.hpp$")
      set(allowed OFF)
    endif()
    if(NOT allowed)
      refuse("${file} must not include ${wanted}")
    endif()
  endforeach()
endforeach()
if(bad GREATER 0)
  message(FATAL_ERROR "${bad} faults")
endif()
