// The exceptions that run() throws.
#ifndef COSCHED_PIPELINE_ERROR_HPP
#define COSCHED_PIPELINE_ERROR_HPP

#include <cosched.h>

#include <stdexcept>
#include <string>

namespace cosched::pipeline {

// A call or a run that failed. what() is the complete message.
class Error : public std::runtime_error {
public:
    explicit Error(const cosched_error *error)
        : std::runtime_error(cosched_error_message(error)),
          code_(cosched_error_code(error)),
          reason_(cosched_error_what(error)),
          where_(cosched_error_where(error)),
          report_(text(cosched_error_report(error))) {}

    // The kind of error.
    cosched_code code() const noexcept { return code_; }
    // Whether Running::stop ended the run.
    bool stopped() const noexcept { return code_ == COSCHED_CODE_STOPPED; }
    // What happened, without the place.
    const std::string &reason() const noexcept { return reason_; }
    // The function of libcosched in which the error was detected.
    const std::string &where() const noexcept { return where_; }
    // A report of what the stages had done, as JSON; empty if nothing ran.
    const std::string &report() const noexcept { return report_; }

protected:
    static std::string text(const char *from) { return from != nullptr ? from : ""; }

private:
    cosched_code code_;
    std::string reason_, where_, report_;
};

// A stage that failed. If it threw an exception, that is nested in this one: std::rethrow_if_nested.
class StageError : public Error {
public:
    explicit StageError(const cosched_error *error) : Error(error), stage_(text(cosched_error_stage(error))) {}

    // The stage's name.
    const std::string &stage() const noexcept { return stage_; }

private:
    std::string stage_;
};

}  // namespace cosched::pipeline

#endif
