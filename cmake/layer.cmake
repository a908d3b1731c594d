# lockstep_layer(NAME [USES LAYER...] [LIBRARIES TARGET...] [ROOM FOLDER]
#                [SEES ROOM...])
# lockstep_room(LAYER ROOM [SEES ROOM...] [LIBRARIES TARGET...])
#
# Make this folder's *.c the object library lockstep_NAME. Its include/ is seen
# by those that use it, its other headers by nobody else; it sees the include/
# of the layers it uses, so a wrong-way include does not compile.
#
# A large layer is a house of rooms: folders, each an object library of its own
# that sees the headers of the rooms it names and of no other. Rooms are
# declared before their layer, whose own files are then those of its ROOM.
# The layers are put together in cmake/library.cmake.
define_property(GLOBAL PROPERTY LOCKSTEP_LAYERS
                BRIEF_DOCS "the layers of the library, lowest first")
define_property(GLOBAL PROPERTY LOCKSTEP_OBJECTS
                BRIEF_DOCS "the object libraries of all layers and rooms")
define_property(GLOBAL PROPERTY LOCKSTEP_FOLDERS
                BRIEF_DOCS "the folders of their private headers")

# lockstep_objects(TARGET FOLDER SEES USES LIBRARIES): the lists by name
function(lockstep_objects target folder sees uses libraries)
    file(GLOB sources CONFIGURE_DEPENDS ${folder}/*.c ${folder}/*.S)
    add_library(${target} OBJECT ${sources})
    target_include_directories(${target}
        PUBLIC $<BUILD_INTERFACE:${CMAKE_CURRENT_SOURCE_DIR}/include>
        PRIVATE ${folder})
    foreach(room IN LISTS ${sees})
        target_include_directories(${target} PRIVATE
                                   ${CMAKE_CURRENT_SOURCE_DIR}/${room})
    endforeach()
    foreach(layer IN LISTS ${uses})
        target_link_libraries(${target} PUBLIC lockstep_${layer})
    endforeach()
    target_link_libraries(${target} PRIVATE ${${libraries}})
    set_property(GLOBAL APPEND PROPERTY LOCKSTEP_OBJECTS ${target})
    set_property(GLOBAL APPEND PROPERTY LOCKSTEP_FOLDERS ${folder})
endfunction()

function(lockstep_room layer room)
    cmake_parse_arguments(arg "" "" "SEES;USES;LIBRARIES" ${ARGN})
    lockstep_objects(lockstep_${layer}_${room}
                     ${CMAKE_CURRENT_SOURCE_DIR}/${room}
                     arg_SEES arg_USES arg_LIBRARIES)
endfunction()

function(lockstep_layer name)
    cmake_parse_arguments(arg "" "ROOM" "SEES;USES;LIBRARIES" ${ARGN})
    set(folder ${CMAKE_CURRENT_SOURCE_DIR})
    if(arg_ROOM)
        string(APPEND folder /${arg_ROOM})
    endif()
    lockstep_objects(lockstep_${name} ${folder} arg_SEES arg_USES
                     arg_LIBRARIES)
    set_property(GLOBAL APPEND PROPERTY LOCKSTEP_LAYERS ${name})
endfunction()
