# cmake --install: library, headers, program, plugins, configurations, and what
# CMake and pkg-config need to find them. All of it may be moved as a whole.
include(CMakePackageConfigHelpers)
set(package ${CMAKE_INSTALL_LIBDIR}/cmake/lockstep)
set(LOCKSTEP_PLUGINS ${CMAKE_INSTALL_LIBDIR}/lockstep/plugins)
set(LOCKSTEP_CONFIGS ${CMAKE_INSTALL_DATADIR}/lockstep/configs)

install(TARGETS lockstep EXPORT lockstep
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
        FILE_SET HEADERS DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(EXPORT lockstep NAMESPACE lockstep:: DESTINATION ${package}
        FILE lockstep-targets.cmake)
configure_package_config_file(
    ${CMAKE_CURRENT_LIST_DIR}/lockstep-config.cmake.in lockstep-config.cmake
    INSTALL_DESTINATION ${package} NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file(lockstep-config-version.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/lockstep-config.cmake
              ${CMAKE_CURRENT_BINARY_DIR}/lockstep-config-version.cmake
        DESTINATION ${package})

file(RELATIVE_PATH up /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
string(REGEX REPLACE "/$" "" up ${up})
configure_file(${CMAKE_CURRENT_LIST_DIR}/lockstep.pc.in lockstep.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/lockstep.pc
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

# gdb loads it with the library, from its folder or, under /usr, from gdb's own.
set(gdb_folder ${CMAKE_INSTALL_LIBDIR})
if(CMAKE_INSTALL_PREFIX STREQUAL "/usr")
    set(gdb_folder ${CMAKE_INSTALL_DATADIR}/gdb/auto-load/${CMAKE_INSTALL_FULL_LIBDIR})
endif()
install(FILES framework/lockstep-gdb.py DESTINATION ${gdb_folder}
        RENAME liblockstep.so.${PROJECT_VERSION}-gdb.py)

install(DIRECTORY configs/ DESTINATION ${LOCKSTEP_CONFIGS}
        FILES_MATCHING PATTERN *.yaml)
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
