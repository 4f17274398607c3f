#include "framework/distributed/bytes.hpp"

#include "tests/catch.hpp"

namespace quantrain {

TEST_CASE("bytes are read as they were appended", "[framework][distributed]") {
  Communicator::Bytes bytes;
  append_value(bytes, 0.5);
  append_text(bytes, "");
  append_text(bytes, std::string_view("a\0b", 3));
  append_bytes(bytes, nullptr, 0);
  append_value(bytes, uint16_t{7});
  ByteReader reader(bytes);
  CHECK(reader.value<double>() == 0.5);
  CHECK(reader.text().empty());
  CHECK(reader.text() == std::string_view("a\0b", 3));
  CHECK_FALSE(reader.at_end());
  CHECK(reader.bytes(0).empty());
  CHECK(reader.value<uint16_t>() == 7);
  CHECK(reader.at_end());
}

TEST_CASE("too few bytes are refused", "[framework][distributed]") {
  Communicator::Bytes bytes;
  append_text(bytes, "abc");
  bytes.pop_back();
  ByteReader text(bytes);
  CHECK_THROWS_WITH(text.text(), test::ContainsSubstring("too few bytes: 2 are left, expected 3"));
  bytes.resize(7);
  ByteReader value(bytes);
  CHECK_THROWS_AS(value.value<uint64_t>(), DistributedError);
  ByteReader all(bytes);
  CHECK_THROWS_AS(all.bytes(~uint64_t{0}), DistributedError);
}

}  // namespace quantrain
