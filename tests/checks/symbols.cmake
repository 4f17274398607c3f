# cmake -D NM=<nm> -D FLOATS=<library of float kernels> -D INTEGERS=<library of integer kernels>
#   -D ISAS=<build>/framework/isas.cmake -P symbols.cmake
# If a file of kernels/arch/ has an inline function that is not inlined, the linker merges it with functions of the same
# name from other files. The copy that it keeps may use instructions that the CPU lacks. So each such function must be a
# template on the file's own instruction set, or in an unnamed namespace.
cmake_minimum_required(VERSION 3.25)
include(${ISAS})  # sets float_isas and integer_isas: the files of kernels/arch/ that the build has
# For each file of kernels/arch/, a text that the names of its functions must contain.
set(arch_sse2 "xsimd::sse2")
set(arch_avx2 "xsimd::fma3<xsimd::avx2>")
set(arch_avxvnni "AvxVnni")
set(arch_avx512bw "xsimd::avx512bw")
set(arch_avx512vnni "Avx512Vnni")
set(arch_amx "Amx")
set(arch_neon64 "")  # matches every name, because every 64-bit Arm CPU can run the functions of neon64.cpp
set(arch_neon64dot "Neon64Dot")
set(arch_neon64i8mm "Neon64I8mm")

file(GLOB files ${CMAKE_CURRENT_LIST_DIR}/../../framework/kernels/arch/*/*.cpp)
foreach(file IN LISTS files float_isas integer_isas)
  get_filename_component(isa ${file} NAME_WE)
  if(NOT DEFINED arch_${isa})
    message(FATAL_ERROR "tests/checks/symbols.cmake does not know the instruction set ${isa} (${file}): set arch_${isa}")
  endif()
endforeach()

# check(library kind isas): checks the inline functions that the files of kernels/arch/float/ or kernels/arch/integer/
# leave in their library. Also checks that the library has a kernel table for each instruction set in `isas`. An
# instruction set's file has the same name in both folders.
set(bad 0)
function(check library kind isas)
  execute_process(COMMAND ${NM} --demangle --print-file-name ${library}
                  OUTPUT_VARIABLE symbols COMMAND_ERROR_IS_FATAL ANY)
  string(REPLACE ";" "," symbols "${symbols}")
  string(REPLACE "[" "(" symbols "${symbols}")
  string(REPLACE "]" ")" symbols "${symbols}")
  string(REPLACE "\n" ";" symbols "${symbols}")
  set(found)
  foreach(line IN LISTS symbols)
    if(NOT line MATCHES "[:/]([a-z0-9_]+)\\.cpp\\.o: ?[0-9a-f]+ ([A-Za-z]) (.*)$")
      continue()
    endif()
    set(file ${CMAKE_MATCH_1})
    set(type ${CMAKE_MATCH_2})
    set(name "${CMAKE_MATCH_3}")
    if(NOT DEFINED arch_${file})
      continue()
    endif()
    if(name MATCHES "^quantrain::kernels::k[A-Za-z0-9]+${kind}Kernels$")
      list(APPEND found ${file})
    endif()
    # W and w: weak functions. V and u are data, which suit every CPU.
    if(type MATCHES "^[Ww]$")
      string(FIND "${name}" "${arch_${file}}" position)
      if(position EQUAL -1)
        message(NOTICE "${library}: ${file}.cpp.o: ${type} ${name}")
        math(EXPR bad "${bad} + 1")
      endif()
    endif()
  endforeach()
  list(SORT found)
  list(SORT isas)
  if(NOT found STREQUAL isas)
    message(FATAL_ERROR "${library}: expected tables of ${kind} kernels in ${isas}, found them in ${found}")
  endif()
  set(bad ${bad} PARENT_SCOPE)
endfunction()

# disassemble(isa out): the instructions of an integer kernels' file.
function(disassemble isa out)
  get_filename_component(object ${ISAS} DIRECTORY)
  set(object ${object}/${isa}.o)
  execute_process(COMMAND ${AR} p ${INTEGERS} ${isa}.cpp.o OUTPUT_FILE ${object} COMMAND_ERROR_IS_FATAL ANY)
  execute_process(COMMAND ${OBJDUMP} -d ${object} OUTPUT_VARIABLE code COMMAND_ERROR_IS_FATAL ANY)
  set(${out} "${code}" PARENT_SCOPE)
endfunction()

# AVX-VNNI's dot product has a VEX form and an EVEX form, which CPUs without AVX-512 lack. In 64-bit code, byte c4
# starts a VEX instruction of this kind, and byte 62 an EVEX instruction.
if("avxvnni" IN_LIST integer_isas)
  disassemble(avxvnni code)
  string(REGEX MATCHALL ":[ \t]+c4 [0-9a-f]+ [0-9a-f]+ 50 [^\n]*vpdpbusd[^\n]*%ymm" products "${code}")
  list(LENGTH products count)
  if(count LESS 20 OR code MATCHES ":[ \t]+62 |%zmm|%k[1-7]")
    message(FATAL_ERROR "avxvnni.cpp.o has ${count} dot products in VEX form, or an instruction of AVX-512")
  endif()
endif()

# Tiles: only in AMX's own file.
if("amx" IN_LIST integer_isas)
  foreach(isa IN LISTS integer_isas)
    disassemble(${isa} code)
    string(REGEX MATCHALL "tdpbusd" products "${code}")
    list(LENGTH products count)
    if(isa STREQUAL "amx" AND (count LESS 9 OR NOT code MATCHES "tilerelease"))
      message(FATAL_ERROR "amx.cpp.o has only ${count} products of tiles, or does not release them")
    elseif(NOT isa STREQUAL "amx" AND code MATCHES "tdpb|tileload|tilestore|tilezero|tilecfg")
      message(FATAL_ERROR "${isa}.cpp.o has an instruction of AMX")
    endif()
  endforeach()
endif()

check(${FLOATS} Float "${float_isas}")
check(${INTEGERS} Integer "${integer_isas}")
if(bad GREATER 0)
  message(FATAL_ERROR "the linker may merge ${bad} inline functions with those of other files: make each one a "
                      "template on its file's own instruction set, or put it into an unnamed namespace")
endif()
