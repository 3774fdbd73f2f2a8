import { eventually } from './eventually.ts';
import { HttpClient, type HttpAnswer } from './http-client.ts';

const PATIENCE_MS = 30_000;

/**
 * A client that comes again where a service says that it has no time now, as the contract has it:
 * one of several replicas does so where Redis or the API server stood still for a moment.
 */
export class PatientClient extends HttpClient {
  override async send(...request: Parameters<HttpClient['send']>): Promise<HttpAnswer> {
    let answer = await super.send(...request);
    if (answer.json.errorCode === 'UNAVAILABLE')
      await eventually(
        async () => (answer = await super.send(...request)).json.errorCode !== 'UNAVAILABLE',
        `an answer but ${answer.text}`,
        PATIENCE_MS,
      );
    return answer;
  }
}
