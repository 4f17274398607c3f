# The installed package has the libraries, the headers, the guide and the examples (share/doc/quantrain), and files for
# find_package and pkg-config. The headers are under
# include/quantrain, in the same folders as in the repository; internal headers are not installed. The runtime has its
# own export file, so that find_package can find it without the dependencies of training. Of CPack's components, runtime
# and training hold the shared libraries, and dev holds everything else.
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/quantrain)
set(QUANTRAIN_COMPONENTS runtime)
set(folders framework)
set(not_installed
    REGEX "framework/integer/integer_model_ready\\.hpp$" EXCLUDE
    REGEX "framework/kernels/(arch|dispatch|reference|simd)$" EXCLUDE
    REGEX "framework/kernels/float/(conv_axis|depthwise|grain|padding|partial_sums|product|tiles)\\.hpp$" EXCLUDE
    REGEX "framework/kernels/integer/(channels|dot)\\.hpp$" EXCLUDE)
if(QUANTRAIN_TRAINING)
  list(APPEND QUANTRAIN_COMPONENTS framework layers quant)
  list(APPEND folders layers quant)
  list(APPEND not_installed
       REGEX "framework/distributed/mpi/lifeline\\.hpp$" EXCLUDE
       REGEX "layers/onnx/(constant|exporter|external_data|fold_arithmetic)\\.hpp$" EXCLUDE
       REGEX "layers/onnx/(import_window|importer|layout|message|recognize)\\.hpp$" EXCLUDE
       REGEX "quant/import/onnx/(float_graph|import_quantized_model|layer_weights|place|rewriter)\\.hpp$" EXCLUDE
       REGEX "quant/export/onnx/(ends|exact|fixed_point|forms|metadata|qdq|values)\\.hpp$" EXCLUDE)
else()
  list(APPEND not_installed
       REGEX "framework/(autograd|data|distributed|optim|metrics)$" EXCLUDE
       REGEX "framework/core/(array|random|splitmix64)\\.hpp$" EXCLUDE
       REGEX "framework/kernels/float$" EXCLUDE)
endif()

# quantrain_install(export part library...): installs the libraries, and a file <export>.cmake that describes them.
# Shared libraries go into CPack's component <part>.
function(quantrain_install export part)
  list(TRANSFORM ARGN PREPEND quantrain_)
  install(TARGETS ${ARGN} EXPORT ${export}
          ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT dev
          LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT ${part} NAMELINK_COMPONENT dev)
  install(EXPORT ${export} NAMESPACE quantrain:: DESTINATION ${package_dir} COMPONENT dev)
endfunction()
quantrain_install(quantrainRuntimeTargets runtime runtime)
if(QUANTRAIN_TRAINING)
  quantrain_install(quantrainTargets training framework layers quant)
endif()
if(QUANTRAIN_MPI)
  list(APPEND QUANTRAIN_COMPONENTS mpi)
  quantrain_install(quantrainMpiTargets training mpi)
endif()
install(DIRECTORY ${folders}
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/quantrain
        COMPONENT dev
        FILES_MATCHING PATTERN "*.hpp"
        ${not_installed})
if(QUANTRAIN_PROGRAM)
  install(TARGETS quantrain_program RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT program)
endif()
set(doc_dir ${CMAKE_INSTALL_DATADIR}/doc/quantrain)
install(FILES LICENSE DESTINATION ${doc_dir} COMPONENT dev)
# The guide, the other pages and the examples. Their links are adapted to the installed folders.
if(QUANTRAIN_TRAINING)
  install(CODE "execute_process(COMMAND \"${CMAKE_COMMAND}\" -D \"SOURCE=${PROJECT_SOURCE_DIR}\"
    -D \"TO=${PROJECT_BINARY_DIR}/installed_doc\" -D \"DOC=${CMAKE_INSTALL_FULL_DATADIR}/doc/quantrain\"
    -D \"INCLUDE=${CMAKE_INSTALL_FULL_INCLUDEDIR}/quantrain\"
    -P \"${PROJECT_SOURCE_DIR}/packaging/installed_docs.cmake\" COMMAND_ERROR_IS_FATAL ANY)" COMPONENT dev)
  install(DIRECTORY ${PROJECT_BINARY_DIR}/installed_doc/ DESTINATION ${doc_dir} COMPONENT dev USE_SOURCE_PERMISSIONS)
endif()

# quantrain_pc(name description): installs <name>.pc for pkg-config, made from ${requires} and ${libraries}. The
# installed package can be moved to another folder.
function(quantrain_pc name description)
  file(RELATIVE_PATH up /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
  file(CONFIGURE OUTPUT ${name}.pc @ONLY CONTENT
"prefix=\${pcfiledir}/@up@
libdir=\${prefix}/@CMAKE_INSTALL_LIBDIR@
includedir=\${prefix}/@CMAKE_INSTALL_INCLUDEDIR@

Name: @name@
Description: @description@
Version: @PROJECT_VERSION@
Requires: @requires@
Cflags: -I\${includedir}/quantrain
Libs: -L\${libdir} @libraries@
")
  install(FILES ${CMAKE_CURRENT_BINARY_DIR}/${name}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT dev)
endfunction()
# Programs that link static libraries must also link the libraries' dependencies, after the libraries.
set(requires)
set(libraries "-lquantrain_runtime")
if(QUANTRAIN_THREADS AND NOT BUILD_SHARED_LIBS)
  string(APPEND libraries " -ltbb -pthread")
endif()
quantrain_pc(quantrain-runtime "Runs integer networks that quantrain made")
if(QUANTRAIN_TRAINING)
  set(requires quantrain-runtime)
  set(libraries "-lquantrain_quant -lquantrain_layers -lquantrain_framework")
  if(NOT BUILD_SHARED_LIBS)
    if(QUANTRAIN_PNG)
      string(APPEND libraries " -lpng")
    endif()
    string(APPEND libraries " -lz -pthread")
  endif()
  quantrain_pc(quantrain "Neural networks trained with quantization awareness, shipped as integers")
endif()

configure_package_config_file(cmake/quantrainConfig.cmake.in ${PROJECT_BINARY_DIR}/quantrainConfig.cmake
                              INSTALL_DESTINATION ${package_dir})
# Before 1.0 a minor version may change the interface.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/quantrainConfigVersion.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/quantrainConfig.cmake ${PROJECT_BINARY_DIR}/quantrainConfigVersion.cmake
        DESTINATION ${package_dir} COMPONENT dev)
