#pragma once

#include <map>
#include <span>
#include <string>

#include "framework/autograd/named_state.hpp"
#include "framework/io/safetensors.hpp"

namespace quantrain {

/// Saves named state as float32 and int64, with the caller's metadata. The metadata may have any
/// keys except "format", "version" and "layout".
/// Throws: DataError if two entries have the same name, if the metadata has one of these keys, or
/// if TensorFile::add() or save_safetensors() throws it.
void save_parameters(const std::string& path,
                     std::span<const NamedState> state,
                     const std::map<std::string, std::string>& metadata = {});
/// Writes the file's values into the state. If it throws, nothing has changed. Early files hold
/// integers as float32: whole numbers, or counts as pairs {low, high} that mean low + 2^24 high.
/// Throws: DataError if the file cannot be loaded, or has another format, version or layout; if it
/// lacks an entry's name, or has a name that no entry has; if a tensor does not hold floats; if an
/// entry has another type or shape; if an integer is outside of its range; or if an entry is marked
/// NamedState::constant, and its values differ from the file's.
void load_parameters(const std::string& path, std::span<const NamedState> state);
/// The same, for a file that has already been read.
void load_parameters(const std::string& path,
                     const TensorFile& file,
                     std::span<const NamedState> state);
/// The same for a file of another format: checks everything except format, version and layout.
void load_state(const std::string& path, const TensorFile& file, std::span<const NamedState> state);
/// Adds all entries to a file.
void add_state(TensorFile& file, std::span<const NamedState> state);

}  // namespace quantrain
