// The driver of a Java runtime: `java Driver.java COMMANDS REPLIES`. Blocks run as snippets of jshell, in this process.

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
        Sharing.install();
        replies.println("ready");
        for (String line; (line = commands.readLine()) != null; ) {
            String[] words = line.split(" ", 2);
            if (words[0].equals("run")) run(Path.of(words[1]));
            else if (words[0].equals("cd")) stay(words[1]);
            else if (words[0].equals("share")) Sharing.take(words[1].split(" ", 2));
        }
        System.exit(0);
    }

    /** Reports that the folder is fixed: a Java process cannot change it. */
    static void stay(String folder) {
        String here = System.getProperty("user.dir");
        if (!here.equals(folder)) System.err.println("Java stays in " + here + ": it cannot change its working directory.");
    }

    static void run(Path file) throws IOException {
        stopped = false;
        Sharing.folder = file.getParent();
        String code = Files.readString(file);
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

    /** Standard input that asks the user for each line. */
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

    /** `share("rows", rows)`, and the values that other languages share. Objects get into the snippets and out of them as system properties. */
    static class Sharing {
        static final String PLACE = "interpreter.shared";
        static Path folder;

        static void install() {
            java.util.function.BiConsumer<String, Object> give = Sharing::give;
            System.getProperties().put(PLACE, give);
            shell.eval("var __share = (java.util.function.BiConsumer<String, Object>) System.getProperties().remove(\"" + PLACE + "\");");
            shell.eval("void share(String name, Object value) { __share.accept(name, value); }");
        }

        static void give(String name, Object value) {
            List<?> rows = value instanceof List && !((List<?>) value).isEmpty() ? (List<?>) value : List.of();
            boolean flat = !rows.isEmpty() && rows.stream().allMatch(row -> row instanceof Map && !((Map<?, ?>) row).isEmpty());
            String table = flat ? table(rows, name) : null;
            try {
                Path path = Files.createTempFile(folder, "shared-", "");
                Files.writeString(path, table != null ? "{\"table\":" + table + "}" : "{\"value\":" + json(value, name) + "}");
                System.out.flush();
                replies.println("share " + name + " " + path);
            } catch (IOException error) {
                throw new UncheckedIOException(error);
            }
        }

        static String json(Object value, String name) {
            if (value instanceof Object[]) value = Arrays.asList((Object[]) value);
            if (value instanceof int[]) value = Arrays.stream((int[]) value).boxed().toList();
            if (value instanceof long[]) value = Arrays.stream((long[]) value).boxed().toList();
            if (value instanceof double[]) value = Arrays.stream((double[]) value).boxed().toList();
            if (value instanceof Iterable) {
                StringJoiner parts = new StringJoiner(",", "[", "]");
                for (Object each : (Iterable<?>) value) parts.add(json(each, name));
                return parts.toString();
            }
            if (value instanceof Map) {
                StringJoiner parts = new StringJoiner(",", "{", "}");
                ((Map<?, ?>) value).forEach((key, each) -> parts.add(quoted(String.valueOf(key)) + ":" + json(each, name)));
                return parts.toString();
            }
            String type = type(value);
            boolean finite = !(value instanceof Double || value instanceof Float) || Double.isFinite(((Number) value).doubleValue());
            if (value != null && (type == null || !finite))
                throw new IllegalArgumentException(name + " can't be shared: it has a " + value.getClass().getSimpleName()
                    + ". Texts, numbers, booleans, null, dates, and lists, arrays and maps of these can be shared; a list of flat maps is a table.");
            return value == null || !(value instanceof CharSequence || value instanceof java.time.temporal.Temporal || value instanceof Character) ? String.valueOf(value) : quoted(value.toString());
        }

        static String type(Object value) {
            if (value instanceof Integer || value instanceof Long || value instanceof Short || value instanceof Byte || value instanceof java.math.BigInteger) return "integer";
            if (value instanceof Number) return "number";
            if (value instanceof Boolean) return "boolean";
            if (value instanceof CharSequence || value instanceof Character) return "string";
            if (value instanceof java.time.LocalDate) return "date";
            return value instanceof java.time.LocalDateTime || value instanceof java.time.OffsetDateTime || value instanceof java.time.Instant ? "datetime" : null;
        }

        /** The columns of a list of maps; null if one has values of different types, or of none that a table can have. */
        static String table(List<?> rows, String name) {
            Set<Object> keys = new LinkedHashSet<>();
            for (Object row : rows) keys.addAll(((Map<?, ?>) row).keySet());
            StringJoiner columns = new StringJoiner(",", "[", "]");
            for (Object key : keys) {
                List<Object> values = new ArrayList<>();
                for (Object row : rows) values.add(((Map<?, ?>) row).get(key));
                Set<String> types = new HashSet<>();
                for (Object value : values) if (value != null) types.add(type(value));
                if (types.contains("number")) types.remove("integer");
                if (types.size() > 1 || types.contains(null)) return null;
                String type = types.isEmpty() ? "string" : types.iterator().next();
                columns.add("{\"name\":" + quoted(String.valueOf(key)) + ",\"type\":\"" + type + "\",\"values\":" + json(values, name) + "}");
            }
            return columns.toString();
        }

        static String quoted(String text) {
            StringBuilder made = new StringBuilder("\"");
            for (char each : text.toCharArray()) {
                if (each == '"' || each == '\\') made.append('\\').append(each);
                else if (each < ' ') made.append(String.format("\\u%04x", (int) each));
                else made.append(each);
            }
            return made.append('"').toString();
        }

        static void take(String[] words) {
            try {
                Map<?, ?> content = (Map<?, ?>) new Json(Files.readString(Path.of(words[1]))).value();
                Object value = content.containsKey("table") ? rows((List<?>) content.get("table")) : content.get("value");
                System.getProperties().put(PLACE, value == null ? "" : value);
                String type = value == null ? "Object" : declared(value);
                String taken = "(" + type + ") System.getProperties().remove(\"" + PLACE + "\")";
                for (SnippetEvent event : shell.eval(type + " " + words[0] + " = " + (value == null ? "null" : taken) + ";")) {
                    if (event.causeSnippet() == null && event.status() == Snippet.Status.REJECTED) throw new IOException("Java can't have a variable of this name");
                }
            } catch (IOException | RuntimeException error) {
                System.err.println(words[0] + ", which another language shares, could not be set: " + error.getMessage());
            } finally {
                System.getProperties().remove(PLACE);
            }
        }

        static String declared(Object value) {
            if (value instanceof Map) return "Map<String, Object>";
            if (!(value instanceof List)) return value.getClass().getSimpleName();
            Set<String> types = new HashSet<>();
            for (Object each : (List<?>) value) types.add(each == null ? "Object" : declared(each));
            return "List<" + (types.size() == 1 ? types.iterator().next() : "Object") + ">";
        }

        static List<Map<String, Object>> rows(List<?> columns) {
            List<Map<String, Object>> rows = new ArrayList<>();
            for (Object each : columns) {
                Map<?, ?> column = (Map<?, ?>) each;
                List<?> values = (List<?>) column.get("values");
                for (int at = 0; at < values.size(); at++) {
                    if (rows.size() <= at) rows.add(new LinkedHashMap<>());
                    rows.get(at).put((String) column.get("name"), cell((String) column.get("type"), values.get(at)));
                }
            }
            return rows;
        }

        static Object cell(String type, Object value) {
            if (value == null) return null;
            if (type.equals("number")) return ((Number) value).doubleValue();
            if (type.equals("date")) return java.time.LocalDate.parse(((String) value).substring(0, 10));
            if (!type.equals("datetime")) return value;
            return java.time.format.DateTimeFormatter.ISO_DATE_TIME.parseBest((String) value, java.time.OffsetDateTime::from, java.time.LocalDateTime::from);
        }
    }

    /** Reads JSON, which the host has checked. */
    static class Json {
        private final String text;
        private int at;

        Json(String text) { this.text = text; }

        char next() {
            while (Character.isWhitespace(text.charAt(at)) || text.charAt(at) == ',' || text.charAt(at) == ':') at++;
            return text.charAt(at);
        }

        Object value() {
            char first = next();
            if (first == '"') return string();
            if (first == '[') {
                List<Object> list = new ArrayList<>();
                for (at++; next() != ']'; ) list.add(value());
                at++;
                return list;
            }
            if (first == '{') {
                Map<String, Object> map = new LinkedHashMap<>();
                for (at++; next() != '}'; ) map.put(string(), value());
                at++;
                return map;
            }
            int start = at;
            while (at < text.length() && ",]} \n".indexOf(text.charAt(at)) < 0) at++;
            return word(text.substring(start, at));
        }

        static Object word(String word) {
            if (word.equals("null")) return null;
            if (word.equals("true") || word.equals("false")) return word.equals("true");
            if (word.matches(".*[.eE].*")) return Double.valueOf(word);
            java.math.BigInteger whole = new java.math.BigInteger(word);
            if (whole.bitLength() < 32) return whole.intValue();
            return whole.bitLength() < 64 ? (Object) whole.longValue() : (Object) whole.doubleValue();
        }

        String string() {
            next();
            StringBuilder made = new StringBuilder();
            for (at++; text.charAt(at) != '"'; at++) {
                char each = text.charAt(at);
                if (each != '\\') { made.append(each); continue; }
                each = text.charAt(++at);
                if (each == 'u') { made.append((char) Integer.parseInt(text.substring(at + 1, at + 5), 16)); at += 4; }
                else made.append("bfnrt".indexOf(each) < 0 ? each : "\b\f\n\r\t".charAt("bfnrt".indexOf(each)));
            }
            at++;
            return made.toString();
        }
    }
}
