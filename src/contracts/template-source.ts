/** One template document as it was found, not yet read. */
export interface TemplateFile {
  /** Where it stands, for messages. */
  readonly file: string;
  readonly text: string;
}

/**
 * A place that templates are read from at start, in a stable order. Rejects where the place can't
 * be read.
 */
export interface TemplateSource {
  read(): Promise<readonly TemplateFile[]>;
}
