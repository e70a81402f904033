// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
/*
 * jsonpath.c - jsonpath FILE PATH...: what stands at these places of a JSON document, one a line.
 *
 * A path is names and array indices with dots between: rows.0.alloc_ns.median.  Further parts:
 *   *  each element or member in turn   #  how many there are
 *   %  its keys, in order               @  its type
 * An empty path is the document.  The document must be one JSON value with nothing behind it and no
 * key twice in an object.  Exit status 1 and a message if it is not, or if nothing is at a path.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

static const char *type_name(const json_t *v)
{
	static const char *const names[] = {
		[JSON_OBJECT] = "object", [JSON_ARRAY] = "array",  [JSON_STRING] = "string", [JSON_INTEGER] = "integer",
		[JSON_REAL] = "real",	  [JSON_TRUE] = "boolean", [JSON_FALSE] = "boolean", [JSON_NULL] = "null"
	};

	return names[json_typeof(v)];
}

static void print(const json_t *v)
{
	char *text;

	if (json_is_string(v)) {
		puts(json_string_value(v));
		return;
	}
	text = json_dumps(v, JSON_ENCODE_ANY | JSON_COMPACT | JSON_REAL_PRECISION(12));
	puts(text ? text : "?");
	free(text);
}

/* 0, or -1: there is no such place. */
static int walk(json_t *v, const char *path)
{
	char part[64];
	size_t len = strcspn(path, "."), i;
	const char *rest = path[len] ? path + len + 1 : path + len, *key;
	json_t *sub;

	if (!len) {
		print(v);
		return 0;
	}
	snprintf(part, sizeof(part), "%.*s", (int)len, path);
	if (!strcmp(part, "@")) {
		puts(type_name(v));
		return 0;
	}
	if (!strcmp(part, "#")) {
		if (!json_is_array(v) && !json_is_object(v))
			return -1;
		printf("%zu\n", json_is_array(v) ? json_array_size(v) : json_object_size(v));
		return 0;
	}
	if (!strcmp(part, "%")) {
		if (!json_is_object(v))
			return -1;
		i = 0;
		json_object_foreach(v, key, sub)
			printf("%s%s", i++ ? " " : "", key);
		putchar('\n');
		return 0;
	}
	if (!strcmp(part, "*")) {
		if (json_is_array(v)) {
			json_array_foreach(v, i, sub)
				if (walk(sub, rest))
					return -1;
			return 0;
		}
		if (!json_is_object(v))
			return -1;
		json_object_foreach(v, key, sub)
			if (walk(sub, rest))
				return -1;
		return 0;
	}
	sub = json_is_array(v) ? json_array_get(v, strtoul(part, NULL, 10)) : json_object_get(v, part);
	return sub ? walk(sub, rest) : -1;
}

int main(int argc, char **argv)
{
	json_error_t err;
	json_t *doc;
	int i;

	if (argc < 2) {
		fprintf(stderr, "usage: jsonpath FILE PATH...\n");
		return 2;
	}
	doc = json_load_file(argv[1], JSON_REJECT_DUPLICATES | JSON_DECODE_ANY, &err);
	if (!doc) {
		fprintf(stderr, "jsonpath: %s:%d: %s\n", argv[1], err.line, err.text);
		return 1;
	}
	for (i = 2; i < argc; i++)
		if (walk(doc, argv[i])) {
			fprintf(stderr, "jsonpath: %s: nothing at '%s'\n", argv[1], argv[i]);
			return 1;
		}
	json_decref(doc);
	return 0;
}
