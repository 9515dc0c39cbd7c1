"""The Kafka connector: source, sink and publisher, and the brokers to develop and test against."""
