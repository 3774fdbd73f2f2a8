{{- /*
The six characters that an API key ends with: the CRC-32 of what stands before them, in base62, the digits first, then capitals
(src/model/api-key-text.ts). Templates have no bit operations: what follows divides by two, and has a bit of the polynomial
0xEDB88320 flipped by adding or taking away its value.
*/}}
{{- define "sandpool.keyChecksum" -}}
{{- $text := . }}
{{- $polynomial := list 2147483648 1073741824 536870912 134217728 67108864 16777216 8388608 2097152 1048576 524288 32768 512 256 32 }}
{{- $crc := 4294967295 }}
{{- range $at := until (len $text) }}
  {{- $byte := index $text $at }}
  {{- range until 8 }}
    {{- $flips := ne (mod $crc 2) (mod $byte 2) }}
    {{- $crc = div $crc 2 }}
    {{- $byte = div $byte 2 }}
    {{- if $flips }}
      {{- range $bit := $polynomial }}
        {{- if eq (mod (div $crc $bit) 2) 0 }}{{ $crc = add $crc $bit }}{{ else }}{{ $crc = sub $crc $bit }}{{ end }}
      {{- end }}
    {{- end }}
  {{- end }}
{{- end }}
{{- $rest := sub 4294967295 $crc }}
{{- $checksum := "" }}
{{- range until 6 }}
  {{- $digit := mod $rest 62 | int }}
  {{- $checksum = print (substr $digit (add $digit 1 | int) "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz") $checksum }}
  {{- $rest = div $rest 62 }}
{{- end }}
{{- $checksum }}
{{- end }}
