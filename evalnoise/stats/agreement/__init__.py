"""Agreement: of a grader with itself, of two graders, of a grader with the truth; exact, and undefined with a reason."""
