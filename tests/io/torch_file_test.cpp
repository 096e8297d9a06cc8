// SPDX-License-Identifier: Apache-2.0
#include "io/torch_file.h"

#include <gmock/gmock.h>

#include "core/error.h"

// A test of label "engines" checks that torch.load and pickle.load read these files.
namespace kvs {
namespace {

using ::testing::HasSubstr;

TEST(Pickle, IsWrittenOpcodeByOpcode) {
  Pickle pickle;
  pickle.empty_dict().mark().string("a").integer(-2).set_items();
  // PROTO 2, EMPTY_DICT, MARK, BINUNICODE of 1 byte, LONG1 of 8 bytes, SETITEMS, STOP
  EXPECT_EQ(std::move(pickle).finish(),
            std::string("\x80\x02}(X\1\0\0\0a\x8a\x08\xfe\xff\xff\xff\xff\xff\xff\xffu.", 22));
}

TEST(TorchFile, IsAZipOfFourStoredFiles) {
  const std::string file = torch_file({IntegerTensor::Kind::kUint8, {3, 3}, {49, 50, 51, 52, 53, 54, 55, 56, 57}});
  EXPECT_THAT(file, HasSubstr("archive/data/0123456789"));
  // The CRC-32 of "123456789" is cbf43926, the check value of its catalogue; then both sizes.
  EXPECT_THAT(file, HasSubstr(std::string("\x26\x39\xf4\xcb\x09\0\0\0\x09\0\0\0", 12)));
  EXPECT_THAT(file, HasSubstr("ByteStorage"));
  const std::string end = file.substr(file.size() - 22);
  EXPECT_EQ(end.substr(0, 12), std::string("PK\5\6\0\0\0\0\4\0\4\0", 12));
}

TEST(TorchFile, HoldsLongsInEightBytesEach) {
  const std::string file = torch_file({IntegerTensor::Kind::kInt64, {2}, {1, 2}});
  EXPECT_THAT(file, HasSubstr(std::string("archive/data/0\1\0\0\0\0\0\0\0\2\0\0\0\0\0\0\0", 30)));
  EXPECT_THAT(file, HasSubstr("LongStorage"));
}

TEST(TorchFile, HoldsVectorsOfAnObjectInOneStorage) {
  FloatTorchFile file(3);
  file.pickle().empty_list().mark();
  file.vector(std::vector<float>{1});
  file.vector(std::vector<float>{-2, 0.5F});
  file.pickle().append_items();
  const std::string bytes = std::move(file).finish();
  EXPECT_THAT(bytes, HasSubstr("archive/data.pkl\x80\x02]("));
  EXPECT_THAT(bytes, HasSubstr("FloatStorage"));
  EXPECT_THAT(bytes, HasSubstr(std::string("archive/data/0\0\0\x80\x3f\0\0\0\xc0\0\0\0\x3f", 26)));  // little endian
}

TEST(TorchFile, HasTheValuesThatItsStorageStates) {
  const std::vector<float> two{1, 2};
  FloatTorchFile few(3), many(1);
  few.vector(two);
  EXPECT_THROW((void)std::move(few).finish(), Error);
  EXPECT_THROW(many.vector(two), Error);
}

}  // namespace
}  // namespace kvs
