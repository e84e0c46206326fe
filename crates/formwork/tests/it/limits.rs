//! The limits of a section: files that it can write, and time limits.

use std::fs;
use std::path::PathBuf;

use formwork::config::Config;
use formwork::providers::Providers;
use formwork_testkit::server::{Reply, Server};

use super::swap::{Person, program};

/// A configuration in this folder, for a server with these replies.
fn config(folder: &PathBuf, server: &Server, more: &str) -> Config {
    let text = format!(
        "[defaults]\nmax_attempts = 1\n[providers.a]\nkind = \"llama-server\"\nmodel = \"m\"\nbase_url = \"{}\"\n{more}\n",
        server.url()
    );
    fs::create_dir_all(folder).unwrap();
    let file = folder.join("formwork.toml");
    fs::write(&file, text).unwrap();
    Config::load(&file).unwrap()
}

fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("formwork-{name}-{}", std::process::id()));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    folder
}

fn maria() -> Server {
    let body = r#"{"choices":[{"message":{"content":"{\"name\": \"Maria\", \"age\": 34}"},"finish_reason":"stop"}]}"#;
    Server::start([Reply::json(body)]).unwrap()
}

#[tokio::test]
async fn a_recording_stays_below_the_folder_and_replaces_cassettes_alone() {
    let (server, folder) = (maria(), folder("record"));
    fs::create_dir(folder.join("tapes")).unwrap();
    fs::write(folder.join("notes.txt"), "mine").unwrap();
    fs::write(folder.join("empty"), "").unwrap();
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink(std::env::temp_dir(), folder.join("out")).unwrap();
        std::os::unix::fs::symlink(folder.join("elsewhere.json"), folder.join("link.json")).unwrap();
    }
    let absolute = std::env::temp_dir().join("formwork-absolute.json").display().to_string();
    for (path, reason) in [
        (absolute.as_str(), "below the folder of the configuration"),
        ("../up.json", "below the folder of the configuration"),
        ("tapes/../../up.json", "below the folder of the configuration"),
        ("..", "below the folder of the configuration"),
        ("nowhere/it.json", "nowhere"),
        ("notes.txt", "something else than a cassette"),
        ("empty", "something else than a cassette"),
        ("tapes", "something else than a cassette"),
        #[cfg(unix)]
        ("out/it.json", "below the folder of the configuration"),
        #[cfg(unix)]
        ("link.json", "symbolic link"),
    ] {
        let config = config(&folder, &server, &format!("record = {path:?}"));
        let error = Providers::builtin().backends(&config).unwrap_err().to_string();
        assert!(error.contains("formwork.toml:3:1: ") && error.contains(reason), "{path}: {error}");
    }
    for path in ["new.json", "./tapes/new.json"] {
        let config = config(&folder, &server, &format!("stream = false\nrecord = {path:?}"));
        for _ in ["a new file", "a cassette"] {
            let person = program(&config).await.unwrap();
            assert_eq!(person, Person { name: "Maria".to_owned(), age: 34 });
            assert!(fs::read_to_string(folder.join(path)).unwrap().contains("formwork_cassette"), "{path}");
            // Prompts and answers are for the user alone.
            #[cfg(unix)]
            {
                let mode = fs::metadata(folder.join(path)).unwrap().permissions();
                assert_eq!(std::os::unix::fs::PermissionsExt::mode(&mode) & 0o777, 0o600, "{path}");
            }
        }
        let before = fs::read(folder.join(path)).unwrap();
        drop(Providers::builtin().backends(&config).unwrap());
        assert_eq!(fs::read(folder.join(path)).unwrap(), before);
    }
    assert_eq!(fs::read_to_string(folder.join("notes.txt")).unwrap(), "mine");
    fs::remove_dir_all(folder).unwrap();
}

/// The clock stands still and jumps to the next limit, so that the error names the first limit that ends a call.
#[tokio::test(start_paused = true)]
async fn time_limits_above_the_transports_own_hold() {
    let folder = folder("limits");
    for (limits, says) in [
        ("first_timeout_seconds = 900", "900"),
        ("timeout_seconds = 900", "900"),
        ("idle_timeout_seconds = 9\nfirst_timeout_seconds = 600", "600"),
        ("idle_timeout_seconds = 900\ntimeout_seconds = 1000", "1000"),
    ] {
        let server = Server::start([Reply::silent()]).unwrap();
        let error = program(&config(&folder, &server, limits)).await.unwrap_err();
        assert!(format!("{error:#}").contains(says), "{limits}: {error:#}");
    }
    fs::remove_dir_all(folder).unwrap();
}

#[test]
fn a_limit_that_is_none_is_an_error_at_its_place() {
    for (line, says) in [
        ("timeout_seconds = -1", "seconds from 0.001 to 86400, found -1"),
        ("first_timeout_seconds = 0", "seconds from 0.001 to 86400, found 0"),
        ("idle_timeout_seconds = nan", "seconds from 0.001 to 86400, found NaN"),
        ("connect_timeout_seconds = 1e9", "seconds from 0.001 to 86400, found 1000000000"),
        ("concurrency = -1", "integer `-1`"),
        ("[defaults]\ntimeout_seconds = -5.5", "seconds from 0.001 to 86400, found -5.5"),
        ("[defaults]\ntemperature = 2.5", "a temperature from 0 to 2, found 2.5"),
        ("[defaults]\nmax_attempts = 0", "a number of attempts from 1 to 100, found 0"),
        ("[defaults]\nmax_tokens = 0", "a number of tokens from 1, found 0"),
        ("[defaults]\nmax_tokens = -3", "integer `-3`"),
    ] {
        let text = format!("[providers.a]\nkind = \"local\"\n{line}\n");
        let error = Config::from_toml(&text).unwrap_err();
        let row = text.lines().count();
        assert_eq!(error.at.map(|(line, _)| line), Some(row), "{line}: {error}");
        assert!(error.message.contains(says), "{line}: {error}");
    }
}
