// Mutates a safetensors file by its structure: changes bytes of its tensors or a number in its
// header. If the file holds an integer network, the header also describes the network's steps. A
// third of the mutations change raw bytes instead. Most inputs of a corpus are refused, and so are
// their mutants. So half of the mutations start from a recently accepted input.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "fuzz/harness.hpp"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t most);

namespace quantrain::fuzz {
namespace {

constexpr size_t kLength = sizeof(uint64_t);  // size of the length field before the header

struct TensorFileText {
  std::string header;
  std::vector<uint8_t> data;

  /// Returns false if the file is too short for its header.
  bool read(const uint8_t* bytes, size_t size) {
    uint64_t length = 0;
    if (size < kLength) return false;
    std::memcpy(&length, bytes, kLength);
    if (length > size - kLength) return false;
    header.assign(reinterpret_cast<const char*>(bytes) + kLength, length);
    data.assign(bytes + kLength + length, bytes + size);
    return true;
  }

  /// Returns the number of bytes written. Writes nothing and returns 0 if that would be more than
  /// `most`.
  size_t write(uint8_t* bytes, size_t most) {
    header.resize((header.size() + 7) / 8 * 8, ' ');
    const uint64_t length = header.size();
    const size_t size = kLength + header.size() + data.size();
    if (size > most) return 0;
    std::memcpy(bytes, &length, kLength);
    std::copy(header.begin(), header.end(), bytes + kLength);
    std::copy(data.begin(), data.end(), bytes + kLength + header.size());
    return size;
  }
};

struct Span {
  size_t begin, size;
};

/// Positions of the numbers in a text.
std::vector<Span> numbers(const std::string& text) {
  constexpr const char* kNumber = "+-.0123456789eE";
  std::vector<Span> found;
  for (size_t at = 0; (at = text.find_first_of("-0123456789", at)) != std::string::npos;) {
    const size_t end = std::min(text.find_first_not_of(kNumber, at), text.size());
    found.push_back({at, end - at});
    at = end;
  }
  return found;
}

/// Draws random integers from 0 to n - 1.
class Draw {
 public:
  explicit Draw(unsigned int seed) : engine_(seed) {}
  size_t operator()(size_t n) { return engine_() / 16 % n; }

 private:
  std::minstd_rand engine_;
};

void change_data(std::vector<uint8_t>& data, Draw& draw) {
  for (size_t changes = draw(8) + 1; changes > 0; --changes) {
    uint8_t& byte = data[draw(data.size())];
    const uint8_t values[] = {0, 1, 0x7f, 0x80, 0xff, static_cast<uint8_t>(draw(256))};
    byte = draw(3) == 0 ? static_cast<uint8_t>(byte ^ (1 << draw(8)))
                        : values[draw(std::size(values))];
  }
}

/// Changes an integer in the text by at most 2, or a character of another number, or replaces the
/// number by another number of the text or by a bound.
void change_number(std::string& text, Draw& draw) {
  const std::vector<Span> all = numbers(text);
  if (all.empty()) return;
  const Span at = all[draw(all.size())];
  const Span other = all[draw(all.size())];
  const std::string old = text.substr(at.begin, at.size);
  const char* const bounds[] = {"0", "-1", "1", "255", "256", "32768", "2147483647", "1e308"};
  std::string next;
  switch (draw(4)) {
    case 0: next = bounds[draw(std::size(bounds))]; break;
    case 1: next = text.substr(other.begin, other.size); break;
    default:
      if (old.size() > 15 || old.find_first_of(".eE") != std::string::npos) {
        next = old;
        next[draw(next.size())] = static_cast<char>('0' + draw(10));
      } else {
        next = std::to_string(std::strtoll(old.c_str(), nullptr, 10) +
                              static_cast<int64_t>(draw(5)) - 2);
      }
  }
  text.replace(at.begin, at.size, next);
}

}  // namespace
}  // namespace quantrain::fuzz

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data,
                                          size_t size,
                                          size_t most,
                                          unsigned int seed) {
  using namespace quantrain;
  fuzz::Draw draw(seed);
  fuzz::TensorFileText file;
  const std::span<const uint8_t> accepted = fuzz::accepted_input(draw(1 << 20));
  if (draw(2) == 0 && !accepted.empty() && accepted.size() <= most) {
    std::copy(accepted.begin(), accepted.end(), data);
    size = accepted.size();
  }
  if (draw(3) == 0 || !file.read(data, size)) return LLVMFuzzerMutate(data, size, most);
  if (draw(2) == 0 && !file.data.empty()) {
    fuzz::change_data(file.data, draw);
  } else {
    fuzz::change_number(file.header, draw);
  }
  const size_t written = file.write(data, most);
  return written > 0 ? written : LLVMFuzzerMutate(data, size, most);
}
