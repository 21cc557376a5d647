# The driver of a Ruby session: `ruby driver.rb COMMANDS REPLIES`. Blocks run in the top-level binding.

module InterpreterDriver
  SILENT = %i[assign opassign massign def defs class module sclass].freeze # their value says nothing new

  # Standard input: each line is a question to the user.
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
          next # it came between two blocks
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
      when "run" then run(File.read(rest, encoding: "UTF-8"))
      end
    rescue SystemCallError => error
      warn error.message
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

InterpreterDriver.serve(*ARGV)
