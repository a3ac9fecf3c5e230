# A room is a folder, the namespace cautious::<room> and the static library cautious_<room>, compiled in a few batches.
# SOURCES are all .cc files below this folder by default.
#   cautious_room(name [SOURCES file...] [PUBLIC target...] [PRIVATE target...])
find_package(fmt REQUIRED)
find_package(nlohmann_json 3.9 REQUIRED)

function(cautious_room name)
  cmake_parse_arguments(room "" "" "SOURCES;PUBLIC;PRIVATE" ${ARGN})
  if(NOT room_SOURCES)
    file(GLOB_RECURSE room_SOURCES CONFIGURE_DEPENDS *.cc)
  endif()
  add_library(cautious_${name} STATIC ${room_SOURCES})
  target_include_directories(cautious_${name} PUBLIC ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(cautious_${name}
    PUBLIC ${room_PUBLIC} PRIVATE fmt::fmt nlohmann_json::nlohmann_json ${room_PRIVATE})
  cautious_warnings(cautious_${name})
endfunction()
