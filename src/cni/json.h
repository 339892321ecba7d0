/* This file reads JSON (RFC 8259) in place. `json_check` checks a whole text. After that, a value is the span of its octets in the
 * text, and the other functions find and decode values. So the plugin can answer with the octets of a value as they came. Octets
 * above 127 are not checked. */
#ifndef NAMEGATE_CNI_JSON_H
#define NAMEGATE_CNI_JSON_H

#include "cni.h"

#define JSON_DEPTH 64
#define JSON_KEY 64

/* A value in a checked text. `at` is NULL if there is no value. */
struct json {
	const char *at, *end;
};

struct json_reader {
	const char *at, *end;
	/* What was expected where the reader stopped. */
	const char *expected;
	int depth;
};

static bool json_read(struct json_reader *reader);

static bool json_stop(struct json_reader *reader, const char *expected)
{
	reader->expected = expected;
	return false;
}

/* The octet at which the reader is, or 0 at the end. */
static char json_peek(const struct json_reader *reader)
{
	return reader->at < reader->end ? *reader->at : 0;
}

static void json_space(struct json_reader *reader)
{
	while (reader->at < reader->end && *reader->at && strchr(" \t\r\n", *reader->at))
		reader->at++;
}

static bool json_take(struct json_reader *reader, char octet)
{
	if (json_peek(reader) != octet)
		return false;
	reader->at++;
	return true;
}

static int json_hex(char octet)
{
	const char *digits = "0123456789abcdef", *found = octet ? strchr(digits, octet | 32) : NULL;
	return found ? (int)(found - digits) : -1;
}

static bool json_read_escape(struct json_reader *reader)
{
	char kind = json_peek(reader);
	if (!kind || !strchr("\"\\/bfnrtu", kind))
		return json_stop(reader, "an escape of JSON");
	reader->at++;
	for (int i = 0; kind == 'u' && i < 4; i++, reader->at++)
		if (json_hex(json_peek(reader)) < 0)
			return json_stop(reader, "four hexadecimal digits");
	return true;
}

static bool json_read_string(struct json_reader *reader)
{
	if (!json_take(reader, '"'))
		return json_stop(reader, "a string");
	while (reader->at < reader->end && (unsigned char)*reader->at >= ' ') {
		char octet = *reader->at++;
		if (octet == '"')
			return true;
		if (octet == '\\' && !json_read_escape(reader))
			return false;
	}
	return json_stop(reader, "the end of the string");
}

static bool json_read_digits(struct json_reader *reader)
{
	const char *begin = reader->at;
	while (json_peek(reader) >= '0' && json_peek(reader) <= '9')
		reader->at++;
	return reader->at > begin || json_stop(reader, "a digit");
}

static bool json_read_number(struct json_reader *reader)
{
	json_take(reader, '-');
	if (!json_take(reader, '0') && !json_read_digits(reader))
		return false;
	if (json_take(reader, '.') && !json_read_digits(reader))
		return false;
	if (!json_take(reader, 'e') && !json_take(reader, 'E'))
		return true;
	if (!json_take(reader, '+'))
		json_take(reader, '-');
	return json_read_digits(reader);
}

static bool json_read_word(struct json_reader *reader, const char *word)
{
	for (; *word; word++)
		if (!json_take(reader, *word))
			return json_stop(reader, "a value");
	return true;
}

/* Reads the members of an object, or the elements of an array, after the first bracket. */
static bool json_read_parts(struct json_reader *reader, char last)
{
	json_space(reader);
	if (json_take(reader, last))
		return true;
	do {
		json_space(reader);
		if (last == '}') {
			if (!json_read_string(reader))
				return false;
			json_space(reader);
			if (!json_take(reader, ':'))
				return json_stop(reader, "a colon");
		}
		json_space(reader);
		if (!json_read(reader))
			return false;
		json_space(reader);
	} while (json_take(reader, ','));
	return json_take(reader, last) || json_stop(reader, "a comma or the closing bracket");
}

static bool json_read(struct json_reader *reader)
{
	char first = json_peek(reader);
	if (first == '{' || first == '[') {
		if (reader->depth == JSON_DEPTH)
			return json_stop(reader, "at most 64 levels");
		reader->depth++;
		reader->at++;
		bool is_read = json_read_parts(reader, first == '{' ? '}' : ']');
		reader->depth--;
		return is_read;
	}
	if (first == '"')
		return json_read_string(reader);
	if (first == '-' || (first >= '0' && first <= '9'))
		return json_read_number(reader);
	return json_read_word(reader, first == 't' ? "true" : first == 'f' ? "false" : "null");
}

/* Returns the one value of a text, or no value. Then the reader shows where and why. */
static struct json json_check(struct json_reader *reader)
{
	json_space(reader);
	struct json value = { reader->at, NULL };
	if (!json_read(reader))
		return (struct json){ NULL, NULL };
	value.end = reader->at;
	json_space(reader);
	if (reader->at != reader->end) {
		reader->expected = "the end";
		return (struct json){ NULL, NULL };
	}
	return value;
}

static bool json_is(struct json value, char first)
{
	return value.at && *value.at == first;
}

/* Goes to the first part of an object or array. */
static struct json_reader json_parts(struct json value)
{
	return (struct json_reader){ value.at ? value.at + 1 : NULL, value.end, NULL, 0 };
}

/* Returns the next element of an array, or the next key or value of an object; at the end no value. */
static struct json json_next(struct json_reader *reader)
{
	while (reader->at < reader->end && *reader->at && strchr(" \t\r\n,:", *reader->at))
		reader->at++;
	struct json value = { reader->at, NULL };
	if (reader->at == reader->end || json_peek(reader) == ']' || json_peek(reader) == '}' || !json_read(reader))
		return (struct json){ NULL, NULL };
	value.end = reader->at;
	return value;
}

/* The octet of the escape \u with these four digits. Beyond ASCII it is a question mark. */
static char json_unit(const char *digits)
{
	int unit = 0;
	for (int i = 0; i < 4; i++)
		unit = unit << 4 | json_hex(digits[i]);
	return (char)(unit < 128 ? unit : '?');
}

/* Decodes a string. Returns false if the value is no string, does not fit, or contains a zero octet. */
static bool json_string(struct json value, char *into, size_t room)
{
	static const char letters[] = "bfnrt", octets[] = "\b\f\n\r\t";
	struct text text = { into, 0, room, false };
	*into = 0;
	if (!json_is(value, '"'))
		return false;
	for (const char *at = value.at + 1; at < value.end - 1; at++) {
		const char *letter = NULL;
		char octet = *at;
		if (octet == '\\' && *++at == 'u') {
			octet = json_unit(at + 1);
			at += 4;
		} else if (octet == '\\') {
			letter = strchr(letters, *at);
			octet = letter ? octets[letter - letters] : *at;
		}
		add_octet(&text, octet);
	}
	return !text.is_cut && strlen(into) == text.used;
}

/* Returns the last member with this key, as the readers of Go and JavaScript do. */
static struct json json_member(struct json object, const char *key)
{
	struct json found = { NULL, NULL }, name;
	if (!json_is(object, '{'))
		return found;
	struct json_reader reader = json_parts(object);
	while ((name = json_next(&reader)).at) {
		char text[JSON_KEY];
		struct json value = json_next(&reader);
		if (json_string(name, text, sizeof(text)) && strcmp(text, key) == 0)
			found = value;
	}
	return found;
}

#endif
