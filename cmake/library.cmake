# The layers of the framework and its middleware, as one library.
get_property(layers GLOBAL PROPERTY LOCKSTEP_LAYERS)
get_property(objects GLOBAL PROPERTY LOCKSTEP_OBJECTS)
get_property(private GLOBAL PROPERTY LOCKSTEP_FOLDERS)
list(TRANSFORM objects REPLACE "(.+)" "$<TARGET_OBJECTS:\\1>")
set(folders)
foreach(layer IN LISTS layers)
    get_target_property(folder lockstep_${layer} SOURCE_DIR)
    list(APPEND folders ${folder})
endforeach()
set(system PkgConfig::ZMQ PkgConfig::CZMQ PkgConfig::SODIUM PkgConfig::FYAML
           PkgConfig::XXHASH PkgConfig::MSGPACK Threads::Threads
           ${CMAKE_DL_LIBS} m)

# What it installs: every header in a layer's include/, and the two of nodes/
# that outside programs and plugins need.
set(roots ${folders} ${PROJECT_SOURCE_DIR}/nodes)
list(TRANSFORM roots APPEND /include)
set(headers)
foreach(root IN LISTS roots)
    file(GLOB found CONFIGURE_DEPENDS ${root}/lockstep/*.h)
    list(APPEND headers ${found})
endforeach()

add_library(lockstep SHARED ${objects})
add_library(lockstep::lockstep ALIAS lockstep)
target_sources(lockstep PUBLIC FILE_SET HEADERS
               BASE_DIRS ${roots} FILES ${headers})
target_link_libraries(lockstep PRIVATE ${system})
if(NOT LOCKSTEP_SANITIZE) # the program brings the sanitizer's functions
    target_link_options(lockstep PRIVATE -Wl,--no-undefined)
endif()
set_target_properties(lockstep PROPERTIES
    VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}
    VERIFY_INTERFACE_HEADER_SETS ON
    LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/${CMAKE_INSTALL_LIBDIR})

# Compile each public header alone, with everything else.
add_custom_target(headers_alone ALL)
add_dependencies(headers_alone lockstep_verify_interface_header_sets)

# The same with every internal function in reach, for the tests.
add_library(lockstep_static STATIC ${objects})
target_link_libraries(lockstep_static PUBLIC ${system})
list(TRANSFORM folders APPEND /include OUTPUT_VARIABLE public)
target_include_directories(lockstep_static PUBLIC ${public} ${private}
                           ${PROJECT_SOURCE_DIR}/framework/base/inline)
