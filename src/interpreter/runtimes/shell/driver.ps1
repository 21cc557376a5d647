# Untested: reached on Windows only. Blocks come and frames go as JSON lines over a local socket.
param([int]$Port, [string]$Token)

$client = New-Object System.Net.Sockets.TcpClient('127.0.0.1', $Port)
$encoding = New-Object System.Text.UTF8Encoding($false)
$reader = New-Object System.IO.StreamReader($client.GetStream(), $encoding)
$writer = New-Object System.IO.StreamWriter($client.GetStream(), $encoding)
$writer.AutoFlush = $true
$writer.WriteLine($Token)

function Send-Frame($frame) { $writer.WriteLine((ConvertTo-Json $frame -Compress)) }

while ($null -ne ($line = $reader.ReadLine())) {
  $block = ConvertFrom-Json $line
  $global:LASTEXITCODE = 0
  $status = 'ok'
  if ($block.cwd) { Set-Location -LiteralPath $block.cwd }
  try {
    . ([scriptblock]::Create($block.code)) *>&1 | Out-String -Stream |
      ForEach-Object { Send-Frame @{ event = 'stream'; text = "$_`n" } }
    if ($global:LASTEXITCODE -ne 0) { $status = 'error' }
  } catch {
    Send-Frame @{ event = 'stream'; text = ($_ | Out-String) }
    $status = 'error'
    if ($global:LASTEXITCODE -eq 0) { $global:LASTEXITCODE = 1 }
  }
  Send-Frame @{ event = 'done'; status = $status; exit_code = $global:LASTEXITCODE; cwd = (Get-Location).ProviderPath }
}
