"""A Tk window that asks a question after a delay, and writes the answer to a file."""

import sys
import tkinter as tk

root = tk.Tk()
root.title("Backup")
root.geometry("360x160+80+80")


def ask():
    question = tk.Toplevel(root)
    question.title("Ready")
    question.geometry("+300+320")
    tk.Label(question, text="The backup is ready. What about the old one?", font=("DejaVu Sans", 12)).pack(
        padx=20, pady=10
    )
    for answer in ("Keep", "Discard"):
        tk.Button(question, text=answer, font=("DejaVu Sans", 12), command=lambda a=answer: done(a)).pack(pady=4)


def done(answer):
    with open(sys.argv[1], "w", encoding="utf-8") as file:
        file.write(answer)
    root.destroy()


tk.Button(root, text="Begin", font=("DejaVu Sans", 14), command=lambda: root.after(900, ask)).pack(expand=True)
root.mainloop()
