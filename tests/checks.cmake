# Tests that are not Catch2 programs. They test, for example, the installed package, the sources, the compiled
# libraries, the pages and exported C code. Sanitizer builds leave out tests in which sanitizers would find nothing more.
if(QUANTRAIN_INSTALL AND NOT QUANTRAIN_SANITIZE)
  add_test(NAME consumer_project
           COMMAND ${CMAKE_COMMAND} -D BUILD=${PROJECT_BINARY_DIR} -D SOURCE=${CMAKE_CURRENT_SOURCE_DIR}/consumer
                   -D WORK=${CMAKE_CURRENT_BINARY_DIR}/consumer -D VERSION=${PROJECT_VERSION}
                   -D GENERATOR=${CMAKE_GENERATOR} -D COMPILER=${CMAKE_CXX_COMPILER} -D CONFIG=$<CONFIG>
                   -D THREADS=${QUANTRAIN_THREADS}
                   -P ${CMAKE_CURRENT_SOURCE_DIR}/consumer/run.cmake)
endif()

if(NOT QUANTRAIN_SANITIZE)
  add_test(NAME without_packages COMMAND ${CMAKE_COMMAND} -D SOURCE=${PROJECT_SOURCE_DIR}
                                         -D WORK=${CMAKE_CURRENT_BINARY_DIR}/without_packages
                                         -D GENERATOR=${CMAKE_GENERATOR} -D COMPILER=${CMAKE_CXX_COMPILER}
                                         -P ${CMAKE_CURRENT_SOURCE_DIR}/checks/without_packages.cmake)
  add_test(NAME vcpkg_port COMMAND ${CMAKE_COMMAND} -D SOURCE=${PROJECT_SOURCE_DIR} -D VERSION=${PROJECT_VERSION}
                                   -P ${CMAKE_CURRENT_SOURCE_DIR}/checks/vcpkg.cmake)
  add_test(NAME moved_headers COMMAND ${CMAKE_COMMAND} -D SOURCE=${PROJECT_SOURCE_DIR}
                                      -D WORK=${CMAKE_CURRENT_BINARY_DIR}/moved_headers -D COMPILER=${CMAKE_CXX_COMPILER}
                                      -D XTENSOR=$<TARGET_PROPERTY:xtensor,INTERFACE_INCLUDE_DIRECTORIES>
                                      -P ${CMAKE_CURRENT_SOURCE_DIR}/checks/moved_headers.cmake)
  set_tests_properties(moved_headers PROPERTIES SKIP_REGULAR_EXPRESSION "^SKIPPED")
  add_test(NAME includes COMMAND ${CMAKE_COMMAND} -D SOURCE=${PROJECT_SOURCE_DIR}
                                 -P ${CMAKE_CURRENT_SOURCE_DIR}/checks/includes.cmake)
  add_test(NAME architecture COMMAND ${CMAKE_COMMAND} -D SOURCE=${PROJECT_SOURCE_DIR}
                                     -P ${CMAKE_CURRENT_SOURCE_DIR}/checks/architecture.cmake)
  add_test(NAME folders COMMAND ${CMAKE_COMMAND} -D SOURCE=${PROJECT_SOURCE_DIR}
                                -P ${CMAKE_CURRENT_SOURCE_DIR}/checks/folders.cmake)
  add_test(NAME prose COMMAND ${CMAKE_COMMAND} -D SOURCE=${PROJECT_SOURCE_DIR}
                              -P ${CMAKE_CURRENT_SOURCE_DIR}/checks/prose.cmake)
  add_test(NAME readme COMMAND ${CMAKE_COMMAND} -D SOURCE=${PROJECT_SOURCE_DIR}
                               -P ${CMAKE_CURRENT_SOURCE_DIR}/checks/readme.cmake)
  add_test(NAME format COMMAND ${CMAKE_COMMAND} -D SOURCE=${PROJECT_SOURCE_DIR}
                               -P ${CMAKE_CURRENT_SOURCE_DIR}/checks/format.cmake)
  add_test(NAME c99_core COMMAND ${CMAKE_COMMAND} -D SOURCE=${PROJECT_SOURCE_DIR}
                                 -P ${CMAKE_CURRENT_SOURCE_DIR}/checks/c99_core.cmake)
  set_tests_properties(format c99_core PROPERTIES SKIP_REGULAR_EXPRESSION "^SKIPPED")
endif()
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  add_test(NAME kernel_symbols COMMAND ${CMAKE_COMMAND} -D NM=${CMAKE_NM} -D AR=${CMAKE_AR} -D OBJDUMP=${CMAKE_OBJDUMP}
                                       -D FLOATS=$<TARGET_FILE:quantrain_framework>
                                       -D INTEGERS=$<TARGET_FILE:quantrain_runtime>
                                       -D ISAS=${PROJECT_BINARY_DIR}/framework/isas.cmake
                                       -P ${CMAKE_CURRENT_SOURCE_DIR}/checks/symbols.cmake)
endif()

# The example of docs/quantization.md prints the numbers that the page shows.
add_executable(quantization_example ${PROJECT_SOURCE_DIR}/docs/quantization_example.cpp)
quantrain_compile_settings(quantization_example)
target_link_libraries(quantization_example PRIVATE quantrain::quant)
add_test(NAME quantization_example COMMAND ${CMAKE_COMMAND} -D PROGRAM=$<TARGET_FILE:quantization_example>
                                           -D DOCUMENT=${PROJECT_SOURCE_DIR}/docs/quantization.md
                                           -P ${CMAKE_CURRENT_SOURCE_DIR}/checks/example_output.cmake)

# A reader in Python, written from docs/format.md, computes the engine's integers.
if(NOT QUANTRAIN_SANITIZE)
  add_executable(save_networks format/save_networks.cpp)
  quantrain_compile_settings(save_networks)
  target_compile_options(save_networks PRIVATE ${quantrain_test_optimization})
  target_link_libraries(save_networks PRIVATE quantrain::quant)
  add_test(NAME format_page COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/format/run $<TARGET_FILE:save_networks>
                                    ${CMAKE_CURRENT_BINARY_DIR}/format)
  set_tests_properties(format_page PROPERTIES SKIP_RETURN_CODE 77)
endif()

# The listings of the guide are parts of these programs, and its pages show the error messages that they print.
if(NOT QUANTRAIN_SANITIZE)
  set(programs)
  foreach(program train quantize fewer_bits doctor whole onnx rows numbers pytorch quantized_onnx tflite weights tensors messages device)
    add_executable(guide_${program} ${PROJECT_SOURCE_DIR}/docs/guide/${program}.cpp)
    quantrain_compile_settings(guide_${program})
    target_compile_options(guide_${program} PRIVATE ${quantrain_test_optimization})
    target_link_libraries(guide_${program} PRIVATE quantrain::quant)
    list(APPEND programs -D ${program}=$<TARGET_FILE:guide_${program}>)
  endforeach()
  if(QUANTRAIN_MPI)
    add_executable(guide_ranks ${PROJECT_SOURCE_DIR}/docs/guide/ranks.cpp)
    quantrain_compile_settings(guide_ranks)
    target_compile_options(guide_ranks PRIVATE ${quantrain_test_optimization})
    target_link_libraries(guide_ranks PRIVATE quantrain::quant quantrain::mpi)
  endif()
  add_test(NAME guide COMMAND ${CMAKE_COMMAND} -D SOURCE=${PROJECT_SOURCE_DIR} -D WORK=${CMAKE_CURRENT_BINARY_DIR}/guide
                              ${programs} -P ${CMAKE_CURRENT_SOURCE_DIR}/checks/guide.cmake)
endif()

# Builds the reference with Doxygen, whose warnings are errors.
if(NOT QUANTRAIN_SANITIZE)
  if(TARGET docs)
    add_test(NAME reference COMMAND ${CMAKE_COMMAND} --build ${PROJECT_BINARY_DIR} --target docs)
  else()
    add_test(NAME reference COMMAND ${CMAKE_COMMAND} -E echo "SKIPPED: doxygen was not found")
    set_tests_properties(reference PROPERTIES SKIP_REGULAR_EXPRESSION "^SKIPPED")
  endif()
endif()

if(QUANTRAIN_EXAMPLES)
  add_test(NAME xtensor_example COMMAND xtensor_example)
  set_tests_properties(xtensor_example PROPERTIES PASS_REGULAR_EXPRESSION
    "mean 175 35\nz of the first row -1.34164 -1.34164\nabove the mean 5 5\nweight .2, 2. of sum 3\n$")

  # Visits the page of examples/browser. Sanitizers would find no more here than in the tests of the export.
  if(NOT QUANTRAIN_SANITIZE)
    add_test(NAME browser COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/examples/browser/run $<TARGET_FILE_DIR:mnist_bncnn>)
    set_tests_properties(browser PROPERTIES SKIP_RETURN_CODE 77)
  endif()
endif()

# Exported C of random networks and layers: compiled and run on this machine with gcc and clang, and in emulators of
# other processors. Tests without their compiler or emulator are skipped. The C does not depend on the compiler that
# built the exporter, so only one build runs these tests.
if(QUANTRAIN_EXAMPLES AND NOT QUANTRAIN_SANITIZE AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  function(quantrain_c99_test name)
    add_test(NAME c99_${name} COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/proofs/c99/sample.sh $<TARGET_FILE:c99_programs>
                                      ${CMAKE_CURRENT_BINARY_DIR}/c99_${name} ${ARGN})
    set_tests_properties(c99_${name} PROPERTIES SKIP_RETURN_CODE 77)
  endfunction()
  quantrain_c99_test(gcc gcc-O0 gcc-O3 gcc-O3-march=native plain)
  quantrain_c99_test(clang clang-O0 clang-O3)
  quantrain_c99_test(aarch64 aarch64)
  quantrain_c99_test(riscv64 riscv64)
  quantrain_c99_test(cortex_m mps2-an385/cortex-m0 mps2-an385 mps2-an386 mps3-an547)
endif()

# All instruction sets of 64-bit Arm give the same integers. The test builds the runtime with a cross compiler and runs
# it in an emulator.
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64" AND NOT QUANTRAIN_SANITIZE AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  add_test(NAME arm_kernels COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/proofs/arm/sample.sh ${CMAKE_CURRENT_BINARY_DIR}/arm)
  set_tests_properties(arm_kernels PROPERTIES SKIP_RETURN_CODE 77 COST 2)  # takes longest, so it starts first
endif()
