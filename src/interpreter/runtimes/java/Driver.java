// The driver of a Java session: `java Driver.java COMMANDS REPLIES`. Blocks run as snippets of jshell, in this process.

import java.io.*;
import java.nio.charset.StandardCharsets;
import java.nio.file.*;
import java.util.*;
import java.util.regex.*;
import jdk.jshell.*;

public class Driver {
    static final String[] IMPORTS = {
        "java.io", "java.math", "java.net", "java.nio.file", "java.util", "java.util.concurrent", "java.util.function",
        "java.util.regex", "java.util.stream", "java.time"
    };
    static final Pattern MAIN = Pattern.compile("\\bstatic\\s+(?:final\\s+)?void\\s+main\\s*\\(");
    static BufferedReader commands;
    static PrintStream replies;
    static JShell shell;
    static volatile boolean stopped;

    public static void main(String[] paths) throws Exception {
        commands = new BufferedReader(new InputStreamReader(new FileInputStream(paths[0]), StandardCharsets.UTF_8));
        replies = new PrintStream(new FileOutputStream(paths[1]), true, StandardCharsets.UTF_8);
        System.setOut(new PrintStream(new BufferedOutputStream(new FileOutputStream(FileDescriptor.out), 8192), false, StandardCharsets.UTF_8) {
            @Override public void write(byte[] data, int start, int length) { super.write(data, start, length); flush(); }
        });
        System.setErr(new PrintStream(new FileOutputStream(FileDescriptor.err), true, StandardCharsets.UTF_8));
        System.setIn(new Input());
        sun.misc.Signal.handle(new sun.misc.Signal("INT"), signal -> { stopped = true; if (shell != null) shell.stop(); });
        shell = JShell.builder().executionEngine("local").build();
        for (String name : IMPORTS) shell.eval("import " + name + ".*;");
        replies.println("ready");
        for (String line; (line = commands.readLine()) != null; ) {
            String[] words = line.split(" ", 2);
            if (words[0].equals("run")) run(Files.readString(Path.of(words[1])));
            else if (words[0].equals("cd")) stay(words[1]);
        }
        System.exit(0);
    }

    /** A Java process cannot change its folder. */
    static void stay(String folder) {
        String here = System.getProperty("user.dir");
        if (!here.equals(folder)) System.err.println("Java stays in " + here + ": it cannot change its working directory.");
    }

    static void run(String code) {
        stopped = false;
        boolean ok = true;
        String entrance = null;
        SourceCodeAnalysis analysis = shell.sourceCodeAnalysis();
        String rest = code.replaceFirst("(?m)^\\s*package\\s+[\\w.]+\\s*;", "");
        while (ok && !stopped && !rest.isBlank()) {
            SourceCodeAnalysis.CompletionInfo part = analysis.analyzeCompletion(rest);
            boolean whole = part.completeness().isComplete();
            String source = whole ? part.source() : rest;
            rest = whole ? part.remaining() : "";
            for (SnippetEvent event : shell.eval(source)) {
                if (event.causeSnippet() != null) continue;
                ok &= show(event);
                entrance = entranceOf(event.snippet(), source);
            }
        }
        if (ok && !stopped && entrance != null) for (SnippetEvent event : shell.eval(entrance)) ok &= show(event);
        System.out.flush();
        String status = stopped ? "interrupted 130" : ok ? "ok 0" : "error 1";
        replies.println("done " + status + " " + System.getProperty("user.dir"));
    }

    /** A block that ends with a class that has a `main` is a program: run it. */
    static String entranceOf(Snippet snippet, String source) {
        boolean program = snippet instanceof TypeDeclSnippet && MAIN.matcher(source).find();
        return program ? ((TypeDeclSnippet) snippet).name() + ".main(new String[0]);" : null;
    }

    static boolean show(SnippetEvent event) {
        if (stopped) return false;
        if (event.status() == Snippet.Status.REJECTED) {
            shell.diagnostics(event.snippet()).filter(Diag::isError).forEach(each -> System.err.println("error: " + each.getMessage(Locale.ROOT)));
            System.err.println(event.snippet().source().strip());
            return false;
        }
        if (event.exception() != null) {
            report(event.exception());
            return false;
        }
        if (event.snippet() instanceof ExpressionSnippet && event.value() != null && !event.value().isEmpty()) System.out.println(event.value());
        return true;
    }

    static void report(Throwable error) {
        String name = error instanceof EvalException ? ((EvalException) error).getExceptionClassName() : error.getClass().getName();
        System.err.println("Exception " + name + (error.getMessage() == null ? "" : ": " + error.getMessage()));
        for (StackTraceElement at : error.getStackTrace()) if (!at.getClassName().startsWith("jdk.jshell")) System.err.println("    at " + at);
    }

    /** Standard input: each line is a question to the user. */
    static class Input extends InputStream {
        private byte[] line = {};
        private int next;

        @Override public int read() {
            byte[] one = new byte[1];
            return read(one, 0, 1) < 0 ? -1 : one[0] & 0xff;
        }

        @Override public synchronized int read(byte[] into, int start, int length) {
            if (next == line.length && !ask()) return -1;
            int count = Math.min(length, line.length - next);
            System.arraycopy(line, next, into, start, count);
            next += count;
            return count;
        }

        private boolean ask() {
            System.out.flush();
            replies.println("input ");
            try {
                String[] words = commands.readLine().split(" ", 2);
                if (!words[0].equals("input")) return false;
                line = (Files.readString(Path.of(words[1])) + "\n").getBytes(StandardCharsets.UTF_8);
                next = 0;
                return true;
            } catch (IOException error) {
                return false;
            }
        }
    }
}
