use std::path::Path;

use formwork_batch::{BatchError, Columns, MAX_INPUT, read_rows};
use serde_json::{Value, json};

/// The id of a row, with its input or the message of why it cannot be asked about.
type Found = (Value, Result<String, String>);

/// Reads a file of this name and content, as ids with inputs or messages without the folder.
fn read(name: &str, content: &[u8]) -> Result<Vec<Found>, BatchError> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    std::fs::write(&path, content).unwrap();
    let place = format!("{}/", folder.path().display());
    read_rows(&path, &Columns::default())?
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
            "hello\n{\"id\": 1, \"input\": \"x\"\n[1]\n{\"id\": 2}\n{\"id\": 3, \"input\": {}}\n{\"input\": \"x\"}\n\
             {\"id\": 4, \"input\": \"x\", \"a\": 1, \"a\": 2}\n{\"id\": 5, \"input\": \"y\"}",
            vec![
                bad(Value::Null, "a.jsonl:1: this line is not a JSON object"),
                bad(json!(1), "a.jsonl:2: this line is not a JSON object: it breaks at column 22"),
                bad(Value::Null, "a.jsonl:3: this line is not a JSON object"),
                bad(json!(2), "a.jsonl:4: the field `input` is missing"),
                bad(json!(3), "a.jsonl:5: `input` is not a string"),
                bad(Value::Null, "a.jsonl:6: the field `id` is missing"),
                bad(json!(4), "a.jsonl:7: two members are called `a`: remove one"),
                good(json!(5), "y"),
            ],
        ),
        (
            "a.jsonl",
            "{\"id\": 123456789012345678901, \"input\": \"x\"}\n{\"id\": {\"a\": 0.1234567890123456789}, \"input\": \"x\"}\n\
             {\"id\": 9007199254740993, \"input\": \"x\", \"other\": 123456789012345678901}\n",
            vec![
                bad(
                    Value::Null,
                    "a.jsonl:1: $.id: the integer 123456789012345678901 cannot be kept exactly: write an integer from \
                     -9223372036854775808 to 18446744073709551615 without fraction and exponent, or a string; write the id as a string",
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
    let mut bad_rows = "x\n".repeat(10);
    bad_rows.push_str(r#"{"id": 1, "input": "x"}"#);
    for (name, content, says) in [
        (
            "a.csv",
            "name,text\n1,2\n",
            "a.csv:1: there is no column `id`; the columns are `name`, `text`: name them with --id",
        ),
        ("a.csv", "id,input,id\n1,2,3\n", "a.csv:1: two columns are called `id`: rename one"),
        ("a.tsv", "id,input\n1,2\n", "a.tsv:1: there is no column `id`; the columns are `id,input`"),
        (
            "a.txt",
            "id\tinput\n1\t2\n",
            "a.txt:1: this line is not a JSON object; none of the first rows (2) can be used: rows are",
        ),
        (
            "a.jsonl",
            "{\"id\": 1}",
            "a.jsonl:1: the field `input` is missing; none of the first rows (1) can be used",
        ),
        (
            "a.jsonl",
            &bad_rows,
            "a.jsonl:1: this line is not a JSON object; none of the first rows (10) can be used",
        ),
        (
            "a.xlsx",
            "PK\x03\x04",
            "a.xlsx: this is a ZIP archive or a spreadsheet: unpack it, or save it as CSV",
        ),
        ("a.jsonl", "{}\0", "a.jsonl: byte 2 is 0, so this is no text in UTF-8"),
        ("a.jsonl", "PAR1", "a.jsonl: this is Parquet: name the file *.parquet"),
        #[cfg(not(feature = "parquet"))]
        ("a.parquet", "PAR1", "this build reads and writes no Parquet and Arrow (feature `parquet`)"),
        #[cfg(feature = "parquet")]
        ("a.parquet", "PAR1", "a.parquet: Parquet argument error: EOF"),
    ] {
        let error = read(name, content.as_bytes()).unwrap_err().to_string();
        assert!(error.contains(says), "{name}: {error}");
    }
    let error = read_rows(Path::new("no/such/file"), &Columns::default()).err().unwrap().to_string();
    assert!(error.starts_with("no/such/file: "), "{error}");
}

#[test]
fn a_folder_has_a_row_for_each_file_in_the_order_of_their_paths() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join("sub")).unwrap();
    let write = |name: &str, content: &[u8]| std::fs::write(folder.path().join(name), content).unwrap();
    write("b.txt", b"two");
    write("a.txt", b"one");
    write("sub/c.txt", "\u{feff}three".as_bytes());
    write(".hidden", b"no");
    write("sub/latin.txt", b"caf\xe9");
    write("sub/long.txt", &vec![b'x'; MAX_INPUT + 1]);
    let rows: Vec<_> = read_rows(folder.path(), &Columns::default()).unwrap().map(Result::unwrap).collect();
    let ids: Vec<_> = rows.iter().map(|row| row.as_ref().map_or_else(|bad| &bad.id, |row| &row.id)).collect();
    assert_eq!(ids, ["a.txt", "b.txt", "sub/c.txt", "sub/latin.txt", "sub/long.txt"]);
    assert_eq!(rows[2].as_ref().unwrap().input, "three");
    let messages: Vec<_> = rows.iter().filter_map(|row| row.as_ref().err()).map(|bad| &bad.message).collect();
    assert!(messages[0].ends_with("byte 3 is not UTF-8: save the text as UTF-8"), "{messages:?}");
    assert!(messages[1].ends_with("16 MiB, and a row has at most 16 MiB: split the text"), "{messages:?}");
}

#[test]
fn a_quotation_mark_that_is_not_closed_is_an_error_with_its_line() {
    for (content, line) in [
        ("id,input\n1,a\n2,\"b\nc\n3,d\n", Some(3)),
        ("id,input\n1,\"a \"\"b\nc\"\n2,\"\"\"d\n", Some(4)),
        ("id,input\n1,\"a \"\"b\"\" c\"\n2,d \"e\" \"\"f\n3,\"\"\n", None),
    ] {
        match (read("a.csv", content.as_bytes()), line) {
            (Err(error), Some(line)) => {
                let says = format!("the quotation mark that begins a cell in line {line} is not closed");
                assert!(error.to_string().contains(&says), "{error}");
            }
            (found, line) => assert!(found.is_ok() && line.is_none(), "{content}: {found:?}"),
        }
    }
}
