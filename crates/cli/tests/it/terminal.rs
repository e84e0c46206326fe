//! The screen of a terminal at the end of a command has results and log lines, and no remains of a progress line.

use std::io::{Read as _, Write as _};
use std::process::{Command, Stdio};

use formwork_testkit::each;
use formwork_testkit::server::{Reply, Server};
use serde_json::json;

use super::config::{of, of_text};
use super::{example, formwork, temporary};

/// Returns the lines of a screen after these bytes were written to it.
fn screen(bytes: &str) -> Vec<String> {
    let (mut lines, mut row, mut column) = (vec![Vec::new()], 0_usize, 0_usize);
    let mut letters = bytes.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '\r' => column = 0,
            '\n' => row += 1,
            '\u{1b}' => {
                assert_eq!(letters.next(), Some('['), "{bytes:?}");
                let mut number = String::new();
                let end = loop {
                    match letters.next().unwrap() {
                        letter if letter.is_ascii_digit() || matches!(letter, ';' | '?') => {
                            number.push(letter)
                        }
                        letter => break letter,
                    }
                };
                let count = number.parse().unwrap_or(1);
                let line: &mut Vec<char> = &mut lines[row];
                match end {
                    'A' => row = row.saturating_sub(count),
                    'B' => row += count,
                    'C' => column += count,
                    'D' => column = column.saturating_sub(count),
                    'K' if number == "2" => line.clear(),
                    'K' => line.truncate(column),
                    'J' => {
                        line.truncate(column);
                        lines.truncate(row + 1);
                    }
                    'm' | 'h' | 'l' => {}
                    other => panic!("{other} in {bytes:?}"),
                }
            }
            letter => {
                let line = &mut lines[row];
                line.resize(line.len().max(column + 1), ' ');
                line[column] = letter;
                column += 1;
            }
        }
        lines.resize(lines.len().max(row + 1), Vec::new());
    }
    let lines = lines.into_iter().map(|line| line.into_iter().collect::<String>().trim_end().to_owned());
    lines.filter(|line| !line.is_empty()).collect()
}

/// Runs the command on a terminal, and presses each key after the text before it was written. Returns the whole output and the
/// exit code.
fn on_terminal(args: &[&str], keys: &[(&str, &str)]) -> (String, i32) {
    on_terminal_of(300, args, keys)
}

/// Runs the command on a terminal of this many columns.
fn on_terminal_of(columns: u16, args: &[&str], keys: &[(&str, &str)]) -> (String, i32) {
    let words: Vec<String> = args.iter().map(|arg| format!("'{arg}'")).collect();
    let formwork = env!("CARGO_BIN_EXE_formwork");
    let line = format!("stty cols {columns} -echo; exec {formwork} {}", words.join(" "));
    // A test that waits for a text that never comes has to end, too.
    let mut script = Command::new("timeout");
    script
        .args(["180", "script", "-qec", &line, "/dev/null"])
        .env_remove("FORMWORK_MODEL")
        .env_remove("FORMWORK_CONFIG");
    script.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut child = script.spawn().unwrap();
    let (mut stdin, mut stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let (mut written, mut keys, mut seen) = (Vec::new(), keys.iter(), 0);
    let mut next = keys.next();
    let mut buffer = [0; 4096];
    loop {
        let read = stdout.read(&mut buffer).unwrap_or_default();
        if read == 0 {
            break;
        }
        written.extend(&buffer[..read]);
        while let Some((text, pressed)) = next
            && let Some(at) = String::from_utf8_lossy(&written[seen..]).find(text)
        {
            seen += at + text.len();
            stdin.write_all(pressed.as_bytes()).unwrap();
            next = keys.next();
        }
    }
    (String::from_utf8(written).unwrap(), child.wait().unwrap().code().unwrap())
}

#[test]
fn nothing_is_left_of_a_progress_line() {
    let rubric = temporary(
        "terminal.yaml",
        "name: r\ncriteria: [{id: a, description: A.}, {id: b, description: B.}, {id: c, description: C.}]\n",
    );
    let reply = temporary("terminal.txt", "No.");
    let person = example("person.schema.json");
    let (shape, input) = (example("feature-design.shape"), example("feature-design-input.json"));
    let wallet = example("wallets/staker.json");
    let vote = of_text(&json!({"reasoning": "So.", "verdict": "pass", "confidence": 90}).to_string());
    let maria = of_text(r#"{"name": "Maria Lindqvist", "age": 34, "city": "Lisbon"}"#);
    let cases = [
        (vec!["extract", "-s", &person, "x"], vec![maria], ""),
        (
            vec!["extract", "-s", &person, "x", "--timeout", "1"],
            vec![Reply::silent()],
            "attempt 1 at primary: reading the prompt, 0 s",
        ),
        (vec!["shape", "run", "-s", &shape, "-i", &input], vec![of_text("{}"), of_text("no")], ""),
        (vec!["review", "-r", &rubric, &reply], vec![vote], ""),
        (
            vec!["review", "-r", &rubric, &reply, "--timeout", "1"],
            vec![Reply::silent()],
            "3 calls: 0 pieces, 0 s",
        ),
        (
            vec!["chat", "x", "--timeout", "1"],
            vec![Reply::silent()],
            "attempt 1 at primary: reading the prompt, 0 s",
        ),
        (vec!["oracle", "score", &wallet, "--timeout", "1"], vec![Reply::silent()], "reading the prompt"),
        (
            vec!["oracle", "batch", &wallet, &wallet, "--timeout", "1"],
            vec![Reply::silent()],
            "0 of 2 wallets, 0 s",
        ),
        (vec!["check", "-s", &person, &person], vec![], ""),
    ];
    each(cases, |(args, replies, progress)| {
        let run_with = |run: &dyn Fn(&[&str]) -> (String, i32)| {
            let server = Server::start(replies.clone()).unwrap();
            let config = temporary(&format!("terminal-{}.toml", server.address().port()), of(&server));
            let more = if args[0] != "check" { vec!["--config", config.as_str()] } else { vec![] };
            let (text, code) = run(&[&args[..], &more].concat());
            (text.replace(&server.address().port().to_string(), "PORT"), code)
        };
        let (written, code) = run_with(&|args| on_terminal(args, &[]));
        let (plain, expected) = run_with(&|args| {
            let ran = formwork(args, "");
            (ran.stdout + &ran.stderr, ran.code)
        });
        let sorted = |mut lines: Vec<String>| {
            lines.sort();
            lines
        };
        let without_time = |text: &str| sorted(screen(text)).into_iter().map(timeless).collect::<Vec<_>>();
        assert_eq!(without_time(&written), without_time(&plain.replace('\n', "\r\n")), "{args:?}");
        assert_eq!(code, expected, "{args:?}");
        assert!(written.contains(progress), "{progress}: {written:?}");
        let is_progress = |line: &String| line.contains("reading the prompt") || line.contains(" pieces");
        assert!(!screen(&written).iter().any(is_progress), "{args:?}: {written:?}");
    });
}

/// The start of a line up to "timed out", without figures and hexadecimal ids: these, and which of the limits on time was
/// reached first, differ between two runs.
fn timeless(line: String) -> String {
    let start = line.split("timed out").next().unwrap_or_default();
    start.chars().filter(|letter| !letter.is_ascii_hexdigit()).take(30).collect()
}

#[test]
fn a_narrow_conversation_has_whole_words_and_the_data_of_answers() {
    let answer = json!({
        "task": {"type": "qa", "user_intent": "learn"}, "answer": {"text": "Two and three.", "data": [2, 3]},
        "quality": {"confidence": 0.9, "assumptions": [], "risks": []}, "debug": {"schema_version": "1.1", "model": "m"}
    });
    let server = Server::start([of_text(&answer.to_string())]).unwrap();
    let config = temporary("terminal-data.toml", of(&server));
    let (written, code) = on_terminal_of(
        60,
        &["chat", "--contract", "1.1", "--config", &config],
        &[
            ("> ", "/help\r"),
            ("earlier ones", ""),
            ("> ", "/halp\r"),
            ("/quit ends", ""),
            ("> ", "Which?\r"),
            ("[2, 3]", ""),
            ("> ", "\u{4}"),
        ],
    );
    let lines = screen(&written);
    assert!(code == 0 && lines.iter().all(|line| line.len() <= 60), "{lines:?}");
    let joined = lines.join(" ");
    let help =
        "Ctrl-C ends an answer, Ctrl-D the conversation; the arrow keys edit a line and show earlier ones";
    assert!(
        joined.contains(help) && joined.contains("there is no command `/halp`: /new starts"),
        "{lines:?}"
    );
    let at = lines.iter().position(|line| line == "Two and three.").unwrap();
    assert_eq!(lines[at + 1], "[2, 3]", "{lines:?}");
}

#[test]
fn ctrl_c_ends_the_answer_and_keeps_the_conversation() {
    let text = "A text format for data, which people and programs can read. ".repeat(8);
    let answer = json!({
        "task": {"type": "qa", "user_intent": "learn"}, "answer": {"text": text.trim()},
        "quality": {"confidence": 0.9, "assumptions": [], "risks": []}, "debug": {"schema_version": "1.0", "model": "m"}
    });
    let server = Server::start([Reply::silent(), of_text(&answer.to_string())]).unwrap();
    let config = temporary("terminal-ctrl-c.toml", of(&server));
    let (written, code) = on_terminal(
        &["chat", "--config", &config],
        &[
            ("> ", "What?\r"),
            // By then the server has the question, and its next reply is for the second one.
            ("reading the prompt, 1 s", "\u{3}"),
            ("the answer was ended", ""),
            ("> ", "/help\r"),
            ("Ctrl-D the conversation", ""),
            ("> ", "What now?\r"),
            ("can read.\r\n", ""),
            ("> ", "\u{4}"),
        ],
    );
    let lines = screen(&written);
    assert_eq!(code, 0, "{lines:?}");
    assert_eq!(lines[0], "/new starts a new conversation, /quit ends, /help says more", "{lines:?}");
    assert!(!lines.iter().any(|line| line.contains("attempt")), "{lines:?}");
    // The answer is wrapped to the 300 columns of the terminal, and the first question is not in the history.
    let wrapped: Vec<&String> = lines.iter().filter(|line| line.contains("text format")).collect();
    assert!(wrapped.len() == 2 && wrapped.iter().all(|line| line.len() <= 300), "{lines:?}");
    let second: serde_json::Value = serde_json::from_slice(&server.received()[1].body).unwrap();
    let questions = second["messages"].as_array().unwrap().iter().filter(|one| one["role"] == "user").count();
    assert_eq!(questions, 1, "{second}");
}

#[test]
fn a_warning_about_each_answer_is_printed_once_in_a_conversation() {
    let answer = json!({
        "task": {"type": "qa", "user_intent": "learn"}, "answer": {"text": "Three."},
        "quality": {"confidence": 0.9, "assumptions": [], "risks": []}, "debug": {"schema_version": "1.0", "model": "m"}
    });
    // Without tokens, which is what the warning is about.
    let message = json!({"role": "assistant", "content": answer.to_string()});
    let body = json!({"choices": [{"message": message, "finish_reason": "stop"}]});
    let server = Server::start([Reply::json(body.to_string())]).unwrap();
    let config = temporary("terminal-warning.toml", of(&server));
    let keys = [("> ", "One?\r"), ("Three.", ""), ("> ", "Two?\r"), ("Three.", ""), ("> ", "\u{4}")];
    let (written, code) = on_terminal(&["chat", "--config", &config], &keys);
    let lines = screen(&written);
    let count = |text: &str| lines.iter().filter(|line| line.contains(text)).count();
    assert_eq!((code, count("Three."), count("estimated_usage")), (0, 2, 1), "{lines:?}");
}

#[test]
fn ctrl_c_at_the_prompt_drops_the_line_and_quit_ends() {
    let server = Server::start([Reply::silent()]).unwrap();
    let config = temporary("terminal-quit.toml", of(&server));
    let keys = [("> ", "unfinished\u{3}"), ("> ", "/quit\r")];
    let (written, code) = on_terminal(&["chat", "--config", &config], &keys);
    assert_eq!((code, server.received().len()), (0, 0), "{written:?}");
}
