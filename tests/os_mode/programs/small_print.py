"""A Tk window with words in a small font; writes the clicked one to a file."""

import sys
import tkinter as tk

WORDS = ["Imprint", "Privacy", "Terms", "Withdraw", "Contact", "Licences"]

root = tk.Tk()
root.title("Small print")
root.geometry("420x80+200+160")
row = tk.Frame(root)
row.pack(expand=True)


def clicked(word):
    with open(sys.argv[1], "w", encoding="utf-8") as file:
        file.write(word)


for word in WORDS:
    label = tk.Label(row, text=word, font=("DejaVu Sans", -10))
    label.bind("<Button-1>", lambda event, w=word: clicked(w))
    label.pack(side="left", padx=6)
root.mainloop()
