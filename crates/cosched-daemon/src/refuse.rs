//! Refusals: what happened, why, what to do.

use axum::Json;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use cosched_api::{ErrorBody, ErrorCode};
use std::path::Path;

/// The result of a request.
pub(crate) type Answer<T> = Result<T, ErrorBody>;

/// A refusal in its three parts.
pub(crate) fn refuse(
    code: ErrorCode,
    what: impl Into<String>,
    why: impl Into<String>,
    hint: impl Into<String>,
) -> ErrorBody {
    ErrorBody { code, what: what.into(), why: why.into(), hint: hint.into() }
}

/// A refusal for each of the usual codes.
macro_rules! refusals {
    ($($name:ident: $code:ident),+) => {$(
        pub(crate) fn $name(what: impl Into<String>, why: impl Into<String>, hint: impl Into<String>) -> ErrorBody {
            refuse(ErrorCode::$code, what, why, hint)
        }
    )+};
}

refusals!(invalid: Invalid, forbidden: Forbidden, conflict: Conflict, not_found: NotFound, unsupported: Unsupported);

/// A refusal as the answer to its request.
pub(crate) fn failure(body: ErrorBody) -> Response {
    let status = match body.code {
        ErrorCode::Invalid => StatusCode::BAD_REQUEST,
        ErrorCode::NotFound => StatusCode::NOT_FOUND,
        ErrorCode::Forbidden => StatusCode::FORBIDDEN,
        ErrorCode::Conflict => StatusCode::CONFLICT,
        ErrorCode::Limit => StatusCode::TOO_MANY_REQUESTS,
        ErrorCode::Unsupported => StatusCode::UNPROCESSABLE_ENTITY,
        ErrorCode::Internal => StatusCode::INTERNAL_SERVER_ERROR,
    };
    (status, [(header::CACHE_CONTROL, "no-store")], Json(body)).into_response()
}

/// The machine or the daemon failed at something that should have worked.
pub(crate) fn internal(what: impl Into<String>, why: impl std::fmt::Display) -> ErrorBody {
    let hint = "Nothing was changed. The daemon's log says more; `cosched status` shows what is wrong.";
    refuse(ErrorCode::Internal, what, why.to_string(), hint)
}

/// The disk refused a change of the state.
pub(crate) fn unwritten(dir: &Path, why: &str) -> ErrorBody {
    let hint = "Make room there, or check that disk, and try again. Nothing was changed; running jobs continue, and \
                `cosched kill` ends them.";
    refuse(ErrorCode::Internal, format!("the state in {} could not be written", dir.display()), why, hint)
}

pub(crate) fn no_such_job(id: u64) -> ErrorBody {
    let why = "No running or remembered job has this id";
    not_found(format!("there is no job {id}"), why, "`cosched ps --all` lists the jobs.")
}
