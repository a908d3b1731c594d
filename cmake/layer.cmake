# lockstep_layer(NAME [USES LAYER...] [LIBRARIES TARGET...])
#
# Make this folder's *.c the object library lockstep_NAME. Its include/ is seen
# by those that use it, its other headers by nobody else; it sees the include/
# of the layers it uses, so a wrong-way include does not compile.
# The layers are put together in cmake/library.cmake.
define_property(GLOBAL PROPERTY LOCKSTEP_LAYERS
                BRIEF_DOCS "the layers of the library, lowest first")

function(lockstep_layer name)
    cmake_parse_arguments(arg "" "" "USES;LIBRARIES" ${ARGN})
    file(GLOB sources CONFIGURE_DEPENDS *.c *.S)
    add_library(lockstep_${name} OBJECT ${sources})
    target_include_directories(lockstep_${name}
        PUBLIC $<BUILD_INTERFACE:${CMAKE_CURRENT_SOURCE_DIR}/include>
        PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})
    foreach(layer IN LISTS arg_USES)
        target_link_libraries(lockstep_${name} PUBLIC lockstep_${layer})
    endforeach()
    target_link_libraries(lockstep_${name} PRIVATE ${arg_LIBRARIES})
    set_property(GLOBAL APPEND PROPERTY LOCKSTEP_LAYERS ${name})
endfunction()
