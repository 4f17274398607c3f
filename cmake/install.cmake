# The installed package: libraries, headers under include/quantrain with the repository's tree, and what find_package
# needs. Headers of the insides of kernels stay here. What only runs integer networks has targets of its
# own, so that it can be found without what training depends on.
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/quantrain)
set(QUANTRAIN_COMPONENTS runtime)
set(folders framework)
set(not_installed
    REGEX "framework/kernels/(arch|dispatch|reference|simd)$" EXCLUDE
    REGEX "framework/kernels/float/(conv_axis|depthwise|grain|padding|partial_sums|product|tiles)\\.hpp$" EXCLUDE
    REGEX "framework/kernels/integer/channels\\.hpp$" EXCLUDE)
if(QUANTRAIN_TRAINING)
  list(APPEND QUANTRAIN_COMPONENTS framework layers quant)
  list(APPEND folders layers quant)
else()
  list(APPEND not_installed
       REGEX "framework/(autograd|data|optim)$" EXCLUDE
       REGEX "framework/core/(array|random)\\.hpp$" EXCLUDE
       REGEX "framework/kernels/float$" EXCLUDE)
endif()

# quantrain_install(export component...): libraries, and the file of the package that describes them.
function(quantrain_install export)
  list(TRANSFORM ARGN PREPEND quantrain_)
  install(TARGETS ${ARGN} EXPORT ${export}
          ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
          LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
  install(EXPORT ${export} NAMESPACE quantrain:: DESTINATION ${package_dir})
endfunction()
quantrain_install(quantrainRuntimeTargets runtime)
if(QUANTRAIN_TRAINING)
  quantrain_install(quantrainTargets framework layers quant)
endif()
install(DIRECTORY ${folders}
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/quantrain
        FILES_MATCHING PATTERN "*.hpp"
        ${not_installed})
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/quantrain)

configure_package_config_file(cmake/quantrainConfig.cmake.in ${PROJECT_BINARY_DIR}/quantrainConfig.cmake
                              INSTALL_DESTINATION ${package_dir})
# Before 1.0 a minor version may change the interface.
write_basic_package_version_file(${PROJECT_BINARY_DIR}/quantrainConfigVersion.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/quantrainConfig.cmake ${PROJECT_BINARY_DIR}/quantrainConfigVersion.cmake
        DESTINATION ${package_dir})
