use std::path::Path;

use formwork_batch::{BatchError, MAX_INPUT, read_rows};
use serde_json::{Value, json};

/// The id of a row, with its input or the message of why it cannot be asked about.
type Found = (Value, Result<String, String>);

/// Reads a file of this name and content, as ids with inputs or messages without the folder.
fn read(name: &str, content: &[u8]) -> Result<Vec<Found>, BatchError> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    std::fs::write(&path, content).unwrap();
    let place = format!("{}/", folder.path().display());
    read_rows(&path)?
        .map(|row| {
            Ok(match row? {
                Ok(row) => (row.id, Ok(row.input)),
                Err(bad) => (bad.id, Err(bad.message.replace(&place, ""))),
            })
        })
        .collect()
}

#[test]
fn rows_are_read_and_each_bad_one_says_where_and_why() {
    let good = |id: Value, input: &str| (id, Ok(input.to_owned()));
    let bad = |id: Value, message: &str| (id, Err(message.to_owned()));
    let long = format!(
        "{{\"id\": \"long\", \"input\": \"{}\"}}\n{{\"id\": 1, \"input\": \"a\"}}",
        "x".repeat(50 << 20)
    );
    for (name, content, expected) in [
        (
            "a.jsonl",
            "\u{feff}{\"id\": \"a\", \"input\": \"b\", \"more\": [1]}\n\n{\"input\": \"ü\", \"id\": 7}",
            vec![good(json!("a"), "b"), good(json!(7), "ü")],
        ),
        (
            "a.jsonl",
            "hello\n{\"id\": 1, \"input\": \"x\"\n[1]\n{\"id\": 2}\n{\"id\": 3, \"input\": {}}\n{\"input\": \"x\"}\n",
            vec![
                bad(Value::Null, "a.jsonl:1: this line is not a JSON object"),
                bad(json!(1), "a.jsonl:2: this line is not a JSON object: it breaks at column 22"),
                bad(Value::Null, "a.jsonl:3: this line is not a JSON object"),
                bad(json!(2), "a.jsonl:4: the field `input` is missing"),
                bad(json!(3), "a.jsonl:5: `input` is not a string"),
                bad(Value::Null, "a.jsonl:6: the field `id` is missing"),
            ],
        ),
        (
            "a.jsonl",
            "{\"id\": 123456789012345678901, \"input\": \"x\"}\n{\"id\": {\"a\": 0.1234567890123456789}, \"input\": \"x\"}\n\
             {\"id\": 9007199254740993, \"input\": \"x\", \"other\": 123456789012345678901}\n",
            vec![
                bad(
                    Value::Null,
                    "a.jsonl:1: $.id: the integer 123456789012345678901 cannot be kept exactly: write at most 19 digits without \
                     fraction and exponent, or a string; write the id as a string",
                ),
                bad(
                    Value::Null,
                    "a.jsonl:2: $.id.a: the number 0.1234567890123456789 was rounded to 0.12345678901234568; write the id as a string",
                ),
                good(json!(9_007_199_254_740_993_u64), "x"),
            ],
        ),
        (
            "a.jsonl",
            &long,
            vec![
                bad(
                    json!("long"),
                    "a.jsonl:1: the line has 50 MiB, and a row has at most 16 MiB: split the text",
                ),
                good(json!(1), "a"),
            ],
        ),
        (
            "a.CSV",
            "input,id,x\n\"Maria,\n34\",1,\nJon,2,y\n",
            vec![good(json!("1"), "Maria,\n34"), good(json!("2"), "Jon")],
        ),
        (
            "a.csv",
            "id,input\n1,a,b\n2,c\n",
            vec![
                bad(Value::Null, "a.csv:2: the row has 3 fields, and the header 2: quote fields with commas"),
                good(json!("2"), "c"),
            ],
        ),
        ("a.jsonl", "", vec![]),
    ] {
        assert_eq!(read(name, content.as_bytes()).unwrap(), expected, "{name}");
    }
}

#[test]
fn a_source_that_cannot_be_rows_is_an_error_with_its_place() {
    let error = read("a.csv", b"name,text\n1,2\n").unwrap_err().to_string();
    assert!(
        error.ends_with("a.csv:1: the columns are `name`, `text`: rename two of them to `id` and `input`"),
        "{error}"
    );
    let error = read_rows(Path::new("no/such/file")).err().unwrap().to_string();
    assert!(error.starts_with("no/such/file: "), "{error}");
}

#[test]
fn a_folder_has_a_row_for_each_file_in_the_order_of_their_paths() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("sub")).unwrap();
    let write = |name: &str, content: &[u8]| std::fs::write(folder.path().join(name), content).unwrap();
    write("b.txt", b"two");
    write("a.txt", b"one");
    write("sub/c.txt", b"three");
    write(".hidden", b"no");
    write("sub/latin.txt", b"caf\xe9");
    write("sub/long.txt", &vec![b'x'; MAX_INPUT + 1]);
    let rows: Vec<_> = read_rows(folder.path()).unwrap().map(Result::unwrap).collect();
    let ids: Vec<_> = rows.iter().map(|row| row.as_ref().map_or_else(|bad| &bad.id, |row| &row.id)).collect();
    assert_eq!(ids, ["a.txt", "b.txt", "sub/c.txt", "sub/latin.txt", "sub/long.txt"]);
    assert_eq!(rows[2].as_ref().unwrap().input, "three");
    let messages: Vec<_> = rows.iter().filter_map(|row| row.as_ref().err()).map(|bad| &bad.message).collect();
    assert!(messages[0].ends_with("byte 3 is not UTF-8: save the text as UTF-8"), "{messages:?}");
    assert!(messages[1].ends_with("16 MiB, and a row has at most 16 MiB: split the text"), "{messages:?}");
}
