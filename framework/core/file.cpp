#include "framework/core/file.hpp"

#include <algorithm>
#include <atomic>
#include <utility>

#include "framework/core/error.hpp"
#include "framework/core/system/file.hpp"
#include "framework/core/system/process.hpp"

namespace quantrain {
namespace {

constexpr const char* kWhere = "file";

using system::fail;

// The system would take a zero byte for the end of the path and use another file.
void check_path(const std::string& path) {
  if (path.find('\0') != std::string::npos)
    throw DataError(kWhere, path.c_str(), ": the path has a zero byte after this part");
}

std::string resolve(const std::string& path) {
  if (path.empty()) throw DataError(kWhere, "the path to write to is empty");
  check_path(path);
  return system::resolve(path);
}

// Removes the temporary files of processes that were killed while they wrote to target. A process
// that still runs holds its file.
void remove_leftovers(const std::string& target) {
  const std::string folder = system::folder_of(target);
  const std::string prefix = system::name_of(target) + ".tmp";
  const auto is_number = [](std::string_view text) {
    return !text.empty() &&
           std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
  };
  std::vector<std::string> names;
  if (!system::list(folder, names)) return;  // the leftovers stay, but the write goes on
  for (const std::string& entry : names) {
    const std::string_view name = entry;
    if (!name.starts_with(prefix)) continue;
    const std::string_view numbers = name.substr(prefix.size());
    const size_t dash = std::min(numbers.find('-'), numbers.size());
    if (!is_number(numbers.substr(0, dash)) ||
        !is_number(numbers.substr(std::min(dash + 1, numbers.size()))))
      continue;
    system::remove_unless_held(folder + '/' + entry);
  }
}

// A new file in the folder of its target. The destructor removes it unless it was renamed.
class TemporaryFile {
 public:
  explicit TemporaryFile(std::string target) : target_(std::move(target)) {
    remove_leftovers(target_);
    file_ = system::create_nameless(target_);
    if (!file_.is_open()) make_named();
  }
  ~TemporaryFile() {
    if (!name_.empty()) system::discard(file_, name_);
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  void write(std::span<const uint8_t> bytes) {
    if (!system::write(file_, bytes)) fail(target_, "cannot be written");
  }

  void rename() {
    if (!system::flush(file_)) fail(target_, "cannot be flushed to the disk");
    if (name_.empty()) give_name();
    if (!system::replace(file_, name_, target_))
      fail(target_, "the temporary file cannot be renamed to this path");
    name_.clear();
    if (!file_.close()) fail(target_, "cannot be closed");
    // The new name must reach the disk too. Errors are ignored: some file systems cannot do this.
    system::flush_names(system::folder_of(target_));
  }

 private:
  std::string next_name() const {
    static std::atomic<int> number{0};
    return target_ + ".tmp" + std::to_string(system::process_id()) + "-" + std::to_string(++number);
  }

  void make_named() {
    // A process with the same id in another container may have taken the name.
    do {
      name_ = next_name();
      file_ = system::create(name_, target_);
    } while (!file_.is_open() && system::is_name_taken());
    if (file_.is_open()) return;
    name_.clear();
    fail(target_, "no file can be made in its folder");
  }

  void give_name() {
    for (;;) {
      std::string name = next_name();
      if (system::link(file_, name)) {
        name_ = std::move(name);
        return;
      }
      if (!system::is_name_taken()) fail(target_, "cannot be given a name");
    }
  }

  std::string target_;
  std::string name_;
  system::File file_;
};

}  // namespace

void system::fail(const std::string& path, const char* what) {
  throw DataError(kWhere, path, ": ", what, ": ", last_error());
}

void check_writable(const std::string& path) { const TemporaryFile probe(resolve(path)); }

void write_file(const std::string& path, std::span<const std::span<const uint8_t>> parts) {
  TemporaryFile file(resolve(path));
  for (const std::span<const uint8_t> part : parts) file.write(part);
  file.rename();
}

void write_file(const std::string& path, std::string_view text) {
  const std::span<const uint8_t> parts[] = {
      {reinterpret_cast<const uint8_t*>(text.data()), text.size()}};
  write_file(path, parts);
}

std::vector<std::string> names_in(const std::string& folder) {
  check_path(folder);
  std::vector<std::string> names;
  if (!system::list(folder, names)) fail(folder, "cannot be listed");
  std::sort(names.begin(), names.end());
  return names;
}

InputFile::InputFile(const std::string& path) : path_(path) {
  check_path(path);
  const system::Input input = system::open_to_read(path);
  if (!input.is_regular) throw DataError(kWhere, path, ": is not a regular file");
  if (input.file == nullptr) fail(path, "cannot be opened");
  file_.reset(input.file);
  size_ = left_ = input.size;
}

std::FILE* InputFile::file() const {
  if (file_ == nullptr)
    throw DataError(kWhere, "this InputFile was moved into another one: read from that one");
  return file_.get();
}

void InputFile::rewind() {
  if (std::fseek(file(), 0, SEEK_SET) != 0) fail(path_, "cannot be read");
  left_ = size_;
}

size_t InputFile::read(std::span<uint8_t> out) {
  const size_t wanted = std::min(out.size(), static_cast<size_t>(left_));
  const size_t count = std::fread(out.data(), 1, wanted, file());
  if (count < wanted && std::ferror(file()) != 0) fail(path_, "cannot be read");
  // 0 if the file was truncated after it was opened.
  left_ = count < wanted ? 0 : left_ - static_cast<int64_t>(count);
  return count;
}

}  // namespace quantrain
