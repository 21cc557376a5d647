# The driver of a Ruby runtime: `ruby driver.rb COMMANDS REPLIES`. Blocks run in the top-level binding.

require "date"
require "json"

module InterpreterDriver
  SILENT = %i[assign opassign massign def defs class module sclass].freeze # their value is not worth showing

  # Standard input that asks the user for each line.
  class Input
    include Enumerable

    def gets(*)
      InterpreterDriver.ask
    end

    def readline(*)
      gets or raise EOFError, "end of file reached"
    end

    def each_line
      while (line = gets)
        yield line
      end
    end
    alias each each_line

    def readlines(*)
      to_a
    end

    def read(*)
      to_a.join
    end

    def tty?
      false
    end
    alias isatty tty?

    def fileno
      0
    end
  end

  class << self
    def serve(commands, replies)
      @commands = File.open(commands, "r:UTF-8")
      @replies = File.open(replies, "w:UTF-8")
      @replies.sync = true
      $stdin = Input.new
      $stdout.sync = false
      $PROGRAM_NAME = "ruby"
      ARGV.clear
      @count = 0
      @replies.puts "ready"
      loop do
        begin
          line = @commands.gets or exit!(0)
          obey(*line.chomp.split(" ", 2))
        rescue Interrupt
          next # the interrupt came between two blocks
        end
      end
    end

    def obey(command, rest = "")
      case command
      when "cd" then Dir.chdir(rest)
      when "env"
        name, file = rest.split(" ", 2)
        ENV[name] = File.read(file, encoding: "UTF-8")
      when "unset" then ENV.delete(rest)
      when "share" then take(*rest.split(" ", 2))
      when "run"
        @folder = File.dirname(rest)
        run(File.read(rest, encoding: "UTF-8"))
      end
    rescue SystemCallError => error
      warn error.message
    end

    # -- values shared with other languages

    def share(names, values)
      names.each { |name| values[name.to_sym] = TOPLEVEL_BINDING.local_variable_get(name) }
      values.each do |name, value|
        rows = value.is_a?(Array) && value.any? && value.all? { |row| row.is_a?(Hash) && row.any? }
        columns = columns_of(value) if rows
        path = File.join(@folder, "shared-#{name}")
        File.write(path, JSON.generate(columns ? { table: columns } : { value: checked(value, name) }))
        $stdout.flush
        @replies.puts "share #{name} #{path}"
      end
    end

    def checked(value, name)
      case value
      when nil, true, false, String, Integer then value
      when Symbol then value.to_s
      when Float then value.finite? ? value : not_shareable(name, value)
      when Array then value.map { |each| checked(each, name) }
      when Hash then value.to_h { |key, each| [key.to_s, checked(each, name)] }
      else %w[Time Date DateTime].include?(value.class.name) ? moment(value) : not_shareable(name, value)
      end
    end

    def not_shareable(name, value)
      raise TypeError, "#{name} can't be shared: it has a #{value.class} (#{value.inspect[0, 100]}). Texts, numbers, " \
                       "booleans, nil, times, and arrays and hashes of these can be shared; an array of flat hashes is a table."
    end

    def moment(value)
      value.strftime(value.instance_of?(Date) ? "%Y-%m-%d" : "%Y-%m-%dT%H:%M:%S.%6N%:z")
    end

    TYPES = { Integer => "integer", Float => "number", String => "string", TrueClass => "boolean",
              FalseClass => "boolean", Symbol => "string" }.freeze

    # Converts an array of hashes to columns; nil if one has values of different types.
    def columns_of(rows)
      rows.flat_map(&:keys).uniq.map do |name|
        values = rows.map { |row| row[name] }
        types = values.compact.map { |value| TYPES[value.class] || { "Time" => "datetime", "DateTime" => "datetime", "Date" => "date" }[value.class.name] }.uniq
        types -= ["integer"] if types.include?("number")
        return nil if types.size > 1 || types.include?(nil)

        values = values.map { |value| %w[datetime date].include?(types[0]) && value ? moment(value) : value }
        { name: name.to_s, type: types[0] || "string", values: values }
      end
    end

    def take(name, file)
      content = JSON.parse(File.read(file, encoding: "UTF-8"))
      TOPLEVEL_BINDING.local_variable_set(name, content["table"] ? rows_of(content["table"]) : content["value"])
    rescue NameError => error
      warn "#{name}, which another language shares, could not be set: #{error.message}"
    end

    def rows_of(table)
      columns = table.map do |column|
        times = %w[datetime date].include?(column["type"])
        require "time" if times
        values = times ? column["values"].map { |value| value && (column["type"] == "date" ? Date.parse(value) : Time.parse(value)) } : column["values"]
        [column["name"], values]
      end
      table[0]["values"].each_index.map { |at| columns.to_h { |name, values| [name, values[at]] } }
    end

    def run(code)
      status, exit_code = "ok", 0
      begin
        value = TOPLEVEL_BINDING.eval(code, "block-#{@count += 1}.rb", 1)
        puts "=> #{value.inspect}" unless value.nil? || silent?(code)
      rescue SystemExit => leaving
        status, exit_code = leaving.status.zero? ? ["ok", 0] : ["error", leaving.status]
      rescue Interrupt
        status, exit_code = "interrupted", 130
      rescue Exception => error # rubocop:disable Lint/RescueException
        status, exit_code = "error", 1
        report(error)
      end
      $stdout.flush
      $stderr.flush
      @replies.puts "done #{status} #{exit_code} #{Dir.pwd}"
    end

    def report(error)
      ours = error.backtrace&.index { |line| line.start_with?(__FILE__) }
      error.set_backtrace(error.backtrace[0...ours]) if ours
      $stderr.puts error.full_message(highlight: false, order: :top)
    rescue StandardError
      $stderr.puts error.class
    end

    def silent?(code)
      require "ripper"
      last = Ripper.sexp(code)&.dig(1)&.last
      last.nil? || SILENT.include?(last[0])
    end

    def ask
      $stdout.flush
      @replies.puts "input "
      command, file = @commands.gets.to_s.chomp.split(" ", 2)
      command == "input" ? File.read(file, encoding: "UTF-8") + "\n" : nil
    end
  end
end

# Makes variables available in the other languages: `share :rows`, or `share rows: value`.
def share(*names, **values)
  InterpreterDriver.share(names, values)
end

InterpreterDriver.serve(*ARGV)
