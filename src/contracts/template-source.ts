/** An unparsed template document. */
export interface TemplateFile {
  /** Location, for messages. */
  readonly file: string;
  readonly text: string;
}

/**
 * Source of templates that is read at start, in a stable order. Rejects if the source can't be
 * read.
 */
export interface TemplateSource {
  read(): Promise<readonly TemplateFile[]>;
}
