use formwork_shape::{MAX_BYTES, MAX_DEPTH, Shape};

/// Returns line, column and message of the mistake in a text.
fn mistake(text: &str) -> (usize, usize, String) {
    let error = Shape::parse(text).map(|shape| shape.to_string()).unwrap_err();
    (error.line, error.column, error.message)
}

#[test]
fn each_says_where_and_what_was_expected() {
    for (text, line, column, says) in [
        ("", 1, 1, "the shape is empty: expected a type"),
        ("  // nothing\n", 2, 1, "the shape is empty"),
        ("{\n  \"name\": strng,\n}", 2, 11, "there is no type `strng`: did you mean `string`?"),
        ("{\"a\": int64}", 1, 7, "did you mean `integer`?"),
        ("{\"a\": flag}", 1, 7, "did you mean `boolean`?"),
        ("{\"a\": datetime}", 1, 7, "did you mean `string`?"),
        ("{\"a\": int | bool}", 1, 13, "a place has one type"),
        ("{\"a\": object}", 1, 7, "an object is written with its fields"),
        ("{\"a\": array}", 1, 7, "an array is written `[string]`"),
        ("{\"a\": enum}", 1, 7, "alternatives are written"),
        ("{\"a\": optional string}", 1, 7, "a field that may be left out is written `\"name\"?: string`"),
        ("{\"a\": string?}", 1, 13, "a field that may be left out is written `\"name\"?: string`"),
        ("{\"a\": \"low\" | \"high\"?}", 1, 21, "a field that may be left out is written"),
        ("{\"a\": banana}", 1, 7, "expected `string`, `markdown`"),
        ("{\"a\": strings | null}", 1, 7, "did you mean `string`? The text is written \"strings\""),
        ("{\"a\": string | number}", 1, 16, "a place has one type"),
        ("{\"a\": string | \"x\"}", 1, 16, "\"x\" cannot stand beside a type"),
        ("{\"a\": low | high | low}", 1, 20, "\"low\" is an alternative already"),
        ("{\"a\": string[]}", 1, 13, "an array is written with brackets around its items"),
        ("{\"a\": [string, number]}", 1, 14, "an array has one type for all of its items"),
        ("{\"a\": []}", 1, 8, "expected the type of the items"),
        ("{\"a\" string}", 1, 6, "expected `:` and a type after the name of the field, found `string`"),
        (
            "{\"a\": string \"b\": string}",
            1,
            14,
            "expected `,` and the next field, or `}`, found the text \"b\"",
        ),
        (
            "{\"a\": string, 5: string}",
            1,
            15,
            "expected the name of a field, as in `\"name\": string`, found the number 5",
        ),
        ("{\n\"a\": string,\n\"b\": any,\n\"a\": any}", 4, 1, "the field `a` is there already, on line 2"),
        ("{\"a\": string", 1, 1, "this `{` is never closed"),
        ("{\"a\": [string", 1, 7, "this `[` is never closed"),
        ("{\"a\":", 1, 6, "expected a type, found the end"),
        ("string string", 1, 8, "expected the end of the shape, found `string`"),
        ("{'a': string}", 1, 2, "is no quotation mark of JSON"),
        ("{\"a: string}", 1, 2, "this text has no end on its line"),
        ("{\"\\x\": string}", 1, 2, "is no JSON string"),
        ("01", 1, 1, "`01` is no JSON number"),
        ("/* x", 1, 1, "this comment has no end"),
        ("Array<string>", 1, 6, "an array is written `[string]`"),
        ("{\"ä\": @}", 1, 7, "'@' has no meaning here"),
    ] {
        let found = mistake(text);
        assert_eq!((found.0, found.1), (line, column), "{text}: {found:?}");
        assert!(found.2.contains(says), "{text}: {found:?}");
    }
}

#[test]
fn a_caret_marks_the_place() {
    let error = Shape::parse("{\n\t\"näme\": strng,\n}").unwrap_err();
    let expected = "f.shape:2:10: there is no type `strng`: did you mean `string`?\n  |\n2 |  \"näme\": strng,\n  |          ^^^^^\n";
    assert_eq!(error.pointed("f.shape"), expected);
}

#[test]
fn a_long_line_is_cut_around_the_place() {
    let text = format!("{{\"{}\": strng, \"{}\": any}}", "a".repeat(500), "b".repeat(500));
    let pointed = Shape::parse(&text).unwrap_err().pointed("f");
    let lines: Vec<&str> = pointed.lines().collect();
    assert!(lines[2].chars().count() < 140 && lines[2].contains('…'), "{pointed}");
    let caret = lines[3].chars().position(|c| c == '^').unwrap();
    assert_eq!(lines[2].chars().skip(caret).take(5).collect::<String>(), "strng");
}

#[test]
fn depth_and_size_have_caps() {
    let nested = |depth: usize| format!("{}any{}", "[".repeat(depth), "]".repeat(depth));
    assert!(Shape::parse(&nested(MAX_DEPTH)).is_ok());
    let (_, column, message) = mistake(&nested(MAX_DEPTH + 1));
    assert_eq!(column, MAX_DEPTH + 1);
    assert!(message.contains("nested too deeply: at most 64 levels"), "{message}");
    // Far deeper than the stack allows.
    assert!(mistake(&nested(100_000)).2.contains("nested too deeply"));
    let long = format!("{{\"a\": any}} //{}", "x".repeat(MAX_BYTES));
    assert!(mistake(&long).2.contains("too long for a shape"));
}

#[test]
fn a_message_quotes_little_of_a_long_word() {
    let (_, _, message) = mistake(&format!("{{\"a\": {}}}", "x".repeat(10_000)));
    assert!(message.len() < 400, "{message}");
}

#[test]
fn a_mistake_in_a_list_of_fields_is_where_the_user_wrote_it() {
    for (text, line, column, says) in [
        ("name, age: integr", 1, 12, "there is no type `integr`: did you mean `integer`?"),
        ("a, b: [{c: int, d: strng}]", 1, 20, "did you mean `string`?"),
        ("name: str\nage: banana", 2, 6, "there is no type `banana`"),
        ("a b", 1, 3, "expected `:` and a type after the name of the field, found `b`"),
        ("a: int b: int", 1, 8, "expected `,` and the next field, found `b`"),
        ("a, b, a", 1, 7, "the field `a` is there already, on line 1"),
        ("a: int?, b", 1, 7, "a field that may be left out is written `\"name\"?: string`"),
        ("a: int}", 1, 7, "expected the end of the shape, found `}`"),
        ("a: {b", 1, 4, "this `{` is never closed"),
        ("a # one, b: int # two", 1, 8, "a description ends with its line"),
        ("a # one, b", 1, 8, "a description ends with its line"),
        ("", 1, 1, "the shape is empty"),
    ] {
        let error = Shape::parse_fields(text).map(|shape| shape.to_string()).unwrap_err();
        assert_eq!((error.line, error.column), (line, column), "{text}: {error}");
        assert!(error.message.contains(says), "{text}: {error}");
    }
}
