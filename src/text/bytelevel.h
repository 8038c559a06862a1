/* bytelevel.h: the alphabet of byte-level models: each of the 256 bytes as one character that
 * prints. 0x21–0x7e, 0xa1–0xac and 0xae–0xff stand for themselves, the other 68 in rising order for
 * U+0100, U+0101, … (space: U+0120 Ġ, newline: U+010A Ċ). */
#ifndef MHA_TEXT_BYTELEVEL_H
#define MHA_TEXT_BYTELEVEL_H

#include <stddef.h>
#include <stdint.h>

uint32_t mha_byte_to_char(uint8_t byte);
/* The byte that a character of the alphabet stands for, -1 for other characters. */
int mha_char_to_byte(uint32_t c);
/* Maps a whole piece (valid UTF-8) back to bytes: writes at most `cap` of them and returns how many
 * there are; (size_t)-1 when the piece has a character outside of the alphabet. */
size_t mha_bytes_of_piece(const char *s, size_t n, char *out, size_t cap);

#endif
