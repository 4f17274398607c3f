#pragma once

#include <cstddef>

// Memory as the operating system has it.
namespace quantrain::system {

/// Bytes of a large page, which a block can ask for if map() makes it. The largest size_t if the
/// system has none that every process may use.
size_t large_page();
/// A block at a large page's start. Only for systems with large pages.
/// Throws: std::bad_alloc
void* map(size_t bytes);
void unmap(void* block, size_t bytes);

}  // namespace quantrain::system
