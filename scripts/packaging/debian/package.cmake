# The Debian package: cpack -G DEB, in the build's directory. Its dependencies are those of the machine it is
# made on: one for Debian 12 is made on Debian 12.
set(CPACK_GENERATOR DEB)
set(CPACK_SET_DESTDIR ON) # units are made with the prefix that they are to have, /usr
set(CPACK_INSTALL_PREFIX /usr)
set(CPACK_PACKAGE_VENDOR MemEFS)
set(CPACK_PACKAGE_CONTACT "MemEFS maintainers <root@localhost>")
set(CPACK_PACKAGE_DESCRIPTION "MemEFS makes one file system of the memory of many machines. cm, the Central Manager, \
starts and ends deployments; lm, one per machine, runs their redis-servers and mounts; both are here, and memefs, \
the client. Nothing starts by itself: memefs-cm@NAME.service is for a deployment that /etc/memefs/NAME.json describes.")
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION admin)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_DEPENDS "redis-server (>= 5:7), fuse3, procps, util-linux, mount")
set(CPACK_DEBIAN_PACKAGE_RECOMMENDS "ca-certificates")
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "bash-completion, logrotate")
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(folder ${CMAKE_CURRENT_LIST_DIR})
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA "${folder}/postinst;${folder}/prerm;${folder}/postrm;${folder}/conffiles")

# Only the package has these: what "cmake --install" puts below a prefix has nothing in /etc.
install(FILES ${folder}/../logrotate RENAME memefs DESTINATION /etc/logrotate.d COMPONENT debian EXCLUDE_FROM_ALL)
install(FILES ${CMAKE_SOURCE_DIR}/LICENSE RENAME copyright DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/memefs
        COMPONENT debian EXCLUDE_FROM_ALL)
set(CPACK_INSTALL_CMAKE_PROJECTS "${CMAKE_BINARY_DIR};memefs;ALL;/" "${CMAKE_BINARY_DIR};memefs;debian;/")
include(CPack)
