// Ctrl+Enter asks what stands in the box; `/` goes to it.

const box = document.querySelector("#sql");

box.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
    event.preventDefault();
    box.form.requestSubmit();
  }
});

document.addEventListener("keydown", (event) => {
  const writes = event.target instanceof Element && event.target.closest("input, textarea, select");
  if (event.key !== "/" || writes || event.altKey || event.ctrlKey || event.metaKey) return;
  event.preventDefault();
  box.focus();
});
