export interface TemplateFile {
  /** For messages. */
  readonly file: string;
  readonly text: string;
}

/** Read at start, in a stable order. Rejects if the source can't be read. */
export interface TemplateSource {
  read(): Promise<readonly TemplateFile[]>;
}
