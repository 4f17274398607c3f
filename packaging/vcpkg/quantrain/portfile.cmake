# Builds the source tree that contains this port: vcpkg install quantrain --overlay-ports=packaging/vcpkg
get_filename_component(SOURCE_PATH ${CURRENT_PORT_DIR}/../../.. ABSOLUTE)

vcpkg_check_features(OUT_FEATURE_OPTIONS options FEATURES training QUANTRAIN_TRAINING images QUANTRAIN_PNG)
vcpkg_cmake_configure(
  SOURCE_PATH ${SOURCE_PATH}
  OPTIONS ${options} -DQUANTRAIN_TESTS=OFF -DQUANTRAIN_EXAMPLES=OFF -DQUANTRAIN_PROGRAM=OFF -DQUANTRAIN_MPI=OFF
)
vcpkg_cmake_install()
vcpkg_cmake_config_fixup(CONFIG_PATH lib/cmake/quantrain)
vcpkg_fixup_pkgconfig()
file(REMOVE_RECURSE ${CURRENT_PACKAGES_DIR}/debug/include ${CURRENT_PACKAGES_DIR}/debug/share)
vcpkg_install_copyright(FILE_LIST ${SOURCE_PATH}/LICENSE)
