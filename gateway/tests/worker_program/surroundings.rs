//! What is logged, and how many connections there may be.

use tokio::net::TcpStream;

use super::{ask, worker};

/// Nothing listens here; requests get 502, which is logged.
const NOBODY: &str = "http://127.0.0.1:1";

#[tokio::test(flavor = "multi_thread")]
async fn requests_are_logged_by_id_and_secrets_never() {
    let (worker, addr) = worker(NOBODY, &["--max-num-seqs", "1"], |command| {
        command.env("RUST_LOG", "trace");
    });
    let answer = ask(
        addr,
        &[
            ("authorization", "Bearer open-sesame"),
            ("cookie", "open-sesame"),
            ("x-api-key", "open-sesame"),
            ("x-request-id", "request-7"),
            (
                "traceparent",
                "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            ),
        ],
    )
    .await;
    assert_eq!(answer.status(), 502);
    assert_eq!(answer.headers()["x-request-id"], "request-7");
    let line = worker.wait_for("no answer from the engine");
    assert!(
        line.contains("request-7") && line.contains("0af7651916cd43dd"),
        "{line}"
    );
    let all = worker.all();
    assert!(!all.contains("sesame"), "{all}");
}

/// Started as a service often is, with few files allowed and more to be had.
#[tokio::test(flavor = "multi_thread")]
async fn the_limit_of_open_files_is_raised() {
    let flags = ["--max-num-seqs", "1"];
    let (worker, addr) = worker(NOBODY, &flags, |command| {
        // The same program, run by a shell that lowers the limit.
        let program = command.get_program().to_owned();
        let arguments: Vec<_> = command.get_args().map(ToOwned::to_owned).collect();
        let mut shell = std::process::Command::new("/bin/sh");
        shell.args(["-c", "ulimit -Sn 32; exec \"$@\"", "sh"]);
        shell.arg(program).args(arguments).env_clear();
        shell.stdin(std::process::Stdio::null());
        *command = shell;
    });
    let mut open = Vec::new();
    for _ in 0..200 {
        open.push(TcpStream::connect(addr).await.unwrap());
    }
    assert_eq!(ask(addr, &[]).await.status(), 502);
    assert!(worker.line("could not accept").is_none());
}

#[test]
fn an_address_for_operations_that_is_taken_is_named_with_its_flag() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = taken.local_addr().unwrap().to_string();
    let output = super::program::output(&[
        "worker",
        "--engine-url",
        NOBODY,
        "--listen",
        "127.0.0.1:0",
        "--admin-listen",
        &addr,
    ]);
    assert_eq!(output.status.code(), Some(1));
    let said = super::program::text(&output.stderr);
    assert!(
        said.contains(&addr) && said.contains("--admin-listen"),
        "{said}"
    );
}
